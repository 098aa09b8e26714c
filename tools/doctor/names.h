/// What this host takes names for.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace stagecraft::tools {

/// By name its addresses in digits, sorted; none for a name that is not known here, or not within
/// `patience`. All are asked for at once.
using KnownNames = std::map<std::string, std::vector<std::string>>;
[[nodiscard]] KnownNames resolve(const std::vector<std::string>& names,
                                 std::chrono::milliseconds patience);

}  // namespace stagecraft::tools
