/// show is `stagecraft trace show TRACE`: it draws a traced run below its plan.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Runs the command. Errors: UsageArgument without a file for the picture; those of read_run() and
/// write_pictures().
[[nodiscard]] ExitCode show_trace(const std::vector<std::string>& words, Console& console);

}  // namespace stagecraft::tools
