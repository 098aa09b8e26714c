/// Validators that read an option's number strictly and say in one phrase what they expected and
/// found.
#pragma once

#include <cstdint>
#include <limits>

namespace CLI {
class Validator;
}

namespace stagecraft::tools {

/// A whole number from `least` to `most`; a larger one is told to be too large. Sizes meet LibTorch
/// as 64-bit numbers, and stage, step and microbatch counts as 32-bit ones.
[[nodiscard]] CLI::Validator whole_number(
    std::int64_t least, std::int64_t most = std::numeric_limits<std::int32_t>::max());

/// A finite number greater than 0.
[[nodiscard]] CLI::Validator positive_number();

/// A finite number from 0 up to, not including, `limit`; no limit when it is 0.
[[nodiscard]] CLI::Validator number_from_zero(double limit = 0.0);

}  // namespace stagecraft::tools
