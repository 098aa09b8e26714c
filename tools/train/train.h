/// `stagecraft train`: trains a model as a pipeline, and reports how it went.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Errors: DeviceOutOfMemory if the workers' threads cannot be started; every Error of parsing,
///         reading, compiling and training. Leaves nothing running.
[[nodiscard]] ExitCode train(const std::vector<std::string>& arguments, Console& console);

}  // namespace stagecraft::tools
