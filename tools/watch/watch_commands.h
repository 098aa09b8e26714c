/// The sub-commands that ask a run of `stagecraft train --serve`: watch, status, stop, checkpoint.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Shows the run until it ends; with --once, now.
[[nodiscard]] ExitCode watch_run(const std::vector<std::string>& words, Console& console);
/// Prints one line about it.
[[nodiscard]] ExitCode run_status(const std::vector<std::string>& words, Console& console);
/// Ask it to end after this step, and to write a checkpoint after it.
[[nodiscard]] ExitCode stop_run(const std::vector<std::string>& words, Console& console);
[[nodiscard]] ExitCode checkpoint_run(const std::vector<std::string>& words, Console& console);

}  // namespace stagecraft::tools
