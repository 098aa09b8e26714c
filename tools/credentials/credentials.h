/// credentials is `stagecraft credentials`: it makes, renews and shows the credentials by which the
/// processes of a cluster know each other (actors/security).
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Runs the command of the first word.
/// Errors: UsageArgument for wrong words, and those of the command.
[[nodiscard]] ExitCode credentials(const std::vector<std::string>& arguments, Console& console);

}  // namespace stagecraft::tools
