/// number_text formats numbers for people and programs: 33 for a whole value, 0.125 for another.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace stagecraft::tools {

/// Returns at most six significant digits, and a whole number without a fraction.
[[nodiscard]] std::string number_text(double value);

/// Returns an integer if the value is whole.
[[nodiscard]] nlohmann::ordered_json number_json(double value);

/// Returns "27.3%".
[[nodiscard]] std::string percent_text(double fraction);

}  // namespace stagecraft::tools
