/// profile is `stagecraft profile`: it measures the costs of a model on this machine, and writes
/// them as costs.json.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Runs the command. Errors: every Error of parsing, reading, compiling and measuring.
[[nodiscard]] ExitCode profile_model(const std::vector<std::string>& words, Console& console);

}  // namespace stagecraft::tools
