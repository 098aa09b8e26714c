/// Numbers as people and programs want them: 33 where a value is whole, 0.125 where it is not.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace stagecraft::tools {

/// Returns at most six significant digits, and a whole number whole.
[[nodiscard]] std::string number_text(double value);

/// Returns an integer where the value is whole.
[[nodiscard]] nlohmann::ordered_json number_json(double value);

/// Returns "27.3%".
[[nodiscard]] std::string percent_text(double fraction);

/// "1 row", "4 rows".
[[nodiscard]] std::string count_text(std::size_t count, const std::string& noun);

}  // namespace stagecraft::tools
