/// train is `stagecraft train`: it trains a model as a pipeline, and reports the run.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Runs the command. Leaves nothing running.
/// Errors: DeviceOutOfMemory if the workers' threads cannot be started; every Error of parsing,
/// reading, compiling and training.
[[nodiscard]] ExitCode train(const std::vector<std::string>& arguments, Console& console);

}  // namespace stagecraft::tools
