/// dag is `stagecraft dag`: it shows the training DAG of a strategy or a schedule.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Runs the command of the first word. Errors: UsageArgument, UsageFile; those of the command.
[[nodiscard]] ExitCode dag(const std::vector<std::string>& arguments, Console& console);

}  // namespace stagecraft::tools
