#include "stagecraft/tools/train/number.h"

#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace stagecraft::tools {
namespace {

template <class Number>
std::optional<Number> read_all(const std::string& text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stopped == end ? std::optional(value) : std::nullopt;
}

template <class Number>
CLI::Validator number(const std::string& expected, std::function<bool(Number)> good) {
  return CLI::Validator(
      [=](std::string& text) {
        const auto value = read_all<Number>(text);
        return value && good(*value) ? std::string()
                                     : fmt::format("expects {}, found '{}'", expected, text);
      },
      /*validator_desc=*/"");
}

}  // namespace

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  return number<std::int64_t>(
      fmt::format("a whole number from {} to {}", least, most),
      [least, most](std::int64_t value) { return value >= least && value <= most; });
}

CLI::Validator positive_number() {
  return number<double>("a number greater than 0",
                        [](double value) { return std::isfinite(value) && value > 0; });
}

CLI::Validator number_from_zero(double limit) {
  const std::string expected =
      limit > 0 ? fmt::format("a number from 0 to less than {}", limit) : "a number of at least 0";
  return number<double>(expected, [limit](double value) {
    return std::isfinite(value) && value >= 0 && (limit <= 0 || value < limit);
  });
}

}  // namespace stagecraft::tools
