/// number has validators that read an option's number strictly and say in one phrase what they
/// expected and found, and a reader of numbers with a unit.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace CLI {
class Validator;
}

namespace stagecraft::tools {

/// Accepts a whole number from `least` to `most`; reports a larger one as too large. LibTorch takes
/// sizes as 64-bit numbers; counts of stages, steps and microbatches are 32-bit ones.
[[nodiscard]] CLI::Validator whole_number(
    std::int64_t least, std::int64_t most = std::numeric_limits<std::int32_t>::max());

/// Accepts a finite number greater than 0.
[[nodiscard]] CLI::Validator positive_number();

/// Accepts a number of bytes as parse_bytes() reads it, and replaces it by its digits: the
/// transform() of an option that is a whole number.
[[nodiscard]] CLI::Validator byte_number();

/// Accepts a finite number from 0 up to, not including, `limit`; no limit if it is 0.
[[nodiscard]] CLI::Validator number_from_zero(double limit = 0.0);

/// Returns the finite number at the beginning of a word, and what follows it ("8.4", "cm"); nothing
/// if there is none.
[[nodiscard]] std::optional<std::pair<double, std::string_view>> leading_number(
    std::string_view word);

}  // namespace stagecraft::tools
