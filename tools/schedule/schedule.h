/// schedule is `stagecraft schedule`: it makes, checks, simulates, shows, converts, compares and
/// repairs schedules.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Runs the command of the first word.
/// Errors: every Error of reading, checking and writing.
[[nodiscard]] ExitCode schedule(const std::vector<std::string>& arguments, Console& console);

}  // namespace stagecraft::tools
