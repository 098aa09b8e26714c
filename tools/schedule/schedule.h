/// `stagecraft schedule`: makes, checks, simulates, shows, converts, compares and repairs
/// schedules.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/exit_code.h"
#include "stagecraft/tools/schedule/console.h"

namespace stagecraft::tools {

/// Runs the command of the first word on this process's console.
/// Errors: every Error of reading, checking and writing.
[[nodiscard]] ExitCode schedule(const std::vector<std::string>& arguments);

/// The same on a console of the caller's.
[[nodiscard]] ExitCode schedule(const std::vector<std::string>& arguments, Console& console);

}  // namespace stagecraft::tools
