/// plan is `stagecraft plan`: it chooses cut and schedule for a model's costs, and says why.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Runs the command. Returns exit status 1 if nothing fits the devices.
/// Errors: every Error of reading, planning and writing.
[[nodiscard]] ExitCode plan(const std::vector<std::string>& words, Console& console);

}  // namespace stagecraft::tools
