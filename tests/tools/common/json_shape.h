/// Checks what all commands with --json have in common (JO-1).
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace stagecraft::tests {

/// Checks that `printed` is one or more lines, each an object that begins with the words of the
/// command and the version, and that all keys are snake_case, at any depth. Returns the objects.
std::vector<nlohmann::ordered_json> check_json_shape(const std::string& command,
                                                     const std::string& printed);

}  // namespace stagecraft::tests
