/// command_json makes the objects that commands print with --json. docs/json.md has their fields.
///
///     {"stagecraft":"schedule check","version":1,"valid":true,"violations":[]}
///
/// JO-1: an object is one line. It begins with the words of its command and the version; keys are
/// snake_case. The version grows if a field of any object gets another name, unit or meaning, and
/// not for new fields.
/// JO-2: control characters are escaped, U+007F to U+009F too, so that text of a file or of another
/// host does not change the terminal that prints the object.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace stagecraft::tools {

/// Returns the object with these contents, as a line with its newline. `command`: the words after
/// `stagecraft`, e.g. "schedule check". Names of files need not be UTF-8: other bytes are replaced.
[[nodiscard]] std::string command_json(std::string_view command,
                                       const nlohmann::ordered_json& contents);

}  // namespace stagecraft::tools
