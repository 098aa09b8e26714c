/// eval is `stagecraft eval`: it prints the mean loss of a model on data.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Runs the command. Errors: every Error of parsing, reading, compiling and evaluating.
[[nodiscard]] ExitCode evaluate_model(const std::vector<std::string>& words, Console& console);

}  // namespace stagecraft::tools
