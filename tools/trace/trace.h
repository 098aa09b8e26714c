/// trace is `stagecraft trace`: it reads a run's trace file. `trace compare PLAN TRACE` compares it
/// with a schedule, `trace show TRACE` draws it.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Runs the command of the first word.
/// Errors: UsageArgument for wrong words, and those of the command.
[[nodiscard]] ExitCode trace(const std::vector<std::string>& arguments, Console& console);

}  // namespace stagecraft::tools
