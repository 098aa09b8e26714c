#include "stagecraft/tools/common/number_text.h"

#include <cmath>
#include <cstdint>

#include <fmt/format.h>

namespace stagecraft::tools {
namespace {

bool is_whole(double value) {
  constexpr double kExact = 9007199254740992;  // 2^53: above it, not every whole number is a double
  return std::abs(value) < kExact && std::trunc(value) == value;
}

}  // namespace

std::string number_text(double value) {
  return is_whole(value) ? fmt::format("{}", static_cast<std::int64_t>(value))
                         : fmt::format("{:.6g}", value);
}

nlohmann::ordered_json number_json(double value) {
  if (is_whole(value)) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

std::string percent_text(double fraction) {
  return fmt::format("{:.1f}%", 100 * fraction);
}

}  // namespace stagecraft::tools
