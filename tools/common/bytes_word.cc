#include "stagecraft/tools/common/bytes_word.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "stagecraft/tools/common/command_line.h"

namespace stagecraft::tools {

std::optional<std::pair<double, std::string_view>> leading_number(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return std::pair(value, word.substr(static_cast<std::size_t>(end - word.data())));
}

double bytes_of_word(std::string_view command, const std::string& option, const std::string& word) {
  constexpr std::string_view kUnits = "KMGT";
  const auto number = leading_number(word);
  double scale = 1;
  std::string_view unit = number ? number->second : "";
  if (!unit.empty() && kUnits.find(unit.front()) != std::string_view::npos) {
    scale = std::pow(1024.0, static_cast<double>(kUnits.find(unit.front()) + 1));
    unit.remove_prefix(1);
  }
  const bool rest_is_unit = unit.empty() || unit == "B" || (scale > 1 && unit == "iB");
  if (!number || !rest_is_unit || number->first <= 0) {
    wrong_usage(
        std::string(command),
        fmt::format("{} expects a number of bytes, e.g. 2G or 500M, found '{}'", option, word));
  }
  return number->first * scale;
}

}  // namespace stagecraft::tools
