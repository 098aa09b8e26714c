#include "stagecraft/tools/common/number.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"

namespace stagecraft::tools {
namespace {

/// Returns whether the text is a whole number above `most`.
bool is_larger(const std::string& text, std::int64_t most) {
  const bool digits =
      !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return digits && (error == std::errc::result_out_of_range || value > most);
}

template <class Number>
std::optional<Number> read_all(const std::string& text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stopped == end ? std::optional(value) : std::nullopt;
}

CLI::Validator number(const std::string& expected, std::function<bool(double)> good) {
  return CLI::Validator(
      [=](std::string& text) {
        const auto value = read_all<double>(text);
        return value && good(*value) ? std::string()
                                     : fmt::format("expects {}, found '{}'", expected, text);
      },
      /*validator_desc=*/"");
}

}  // namespace

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  const std::string expected = fmt::format("a whole number from {} to {}", least, most);
  return CLI::Validator(
      [=](std::string& text) {
        const auto value = read_all<std::int64_t>(text);
        if (value && *value >= least && *value <= most) {
          return std::string();
        }
        return fmt::format("expects {}, found '{}'{}",
                           expected,
                           text,
                           is_larger(text, most) ? ", which is too large" : "");
      },
      /*validator_desc=*/"");
}

CLI::Validator byte_number() {
  return CLI::Validator(
      [](std::string& text) {
        const auto bytes = parse_bytes(text);
        if (!bytes) {
          return fmt::format("expects {}, found '{}'", kBytesForm, text);
        }
        text = std::to_string(*bytes);
        return std::string();
      },
      /*validator_desc=*/"");
}

std::optional<std::pair<double, std::string_view>> leading_number(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return std::pair(value, word.substr(static_cast<std::size_t>(end - word.data())));
}

CLI::Validator positive_number() {
  return number("a number greater than 0",
                [](double value) { return std::isfinite(value) && value > 0; });
}

CLI::Validator number_from_zero(double limit) {
  const std::string expected =
      limit > 0 ? fmt::format("a number from 0 to less than {}", limit) : "a number of at least 0";
  return number(expected, [limit](double value) {
    return std::isfinite(value) && value >= 0 && (limit <= 0 || value < limit);
  });
}

}  // namespace stagecraft::tools
