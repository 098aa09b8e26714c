/// names resolves names on this host.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace stagecraft::tools {

/// KnownNames holds the sorted addresses of each name, in digits; none for a name that this host
/// does not know, or does not resolve within `patience`. resolve() asks for all at once.
using KnownNames = std::map<std::string, std::vector<std::string>>;
[[nodiscard]] KnownNames resolve(const std::vector<std::string>& names,
                                 std::chrono::milliseconds patience);

}  // namespace stagecraft::tools
