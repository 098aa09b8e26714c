/// The commands that need LibTorch or the cluster, as one function: the runtime's program runs it,
/// and so do tests.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Runs the command of `words`: its name first, then its options. Reports errors on `console` and
/// returns their status.
[[nodiscard]] ExitCode run_runtime_command(const std::vector<std::string>& words, Console& console);

}  // namespace stagecraft::tools
