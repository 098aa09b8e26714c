/// `stagecraft trace`: what a run's trace file says. `trace compare PLAN TRACE` holds it against a
/// schedule.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/console.h"
#include "stagecraft/tools/exit_code.h"

namespace stagecraft::tools {

/// Runs the command of the first word.
/// Errors: UsageArgument for wrong words, and those of the command.
[[nodiscard]] ExitCode trace(const std::vector<std::string>& arguments, Console& console);

}  // namespace stagecraft::tools
