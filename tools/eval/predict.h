/// predict is `stagecraft predict`: it writes the outputs of a model file for the inputs in a
/// folder.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Runs the command. Errors: every Error of parsing, reading, compiling, predicting and writing.
[[nodiscard]] ExitCode predict_model(const std::vector<std::string>& words, Console& console);

}  // namespace stagecraft::tools
