/// `stagecraft import`: says what is in a model's file, what of it is not supported, and where it
/// would be cut.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/console.h"
#include "stagecraft/tools/exit_code.h"

namespace stagecraft::tools {

/// Returns Failed for a model with something that is not supported.
/// Errors: those of load_model, MicrobatchFiles and describe_inputs; UsageArgument for a cut of a
///         model whose shapes nothing says; those of compile but for what is not supported, which
///         is printed; UsageFile for a file that cannot be written.
[[nodiscard]] ExitCode import_model(const std::vector<std::string>& words, Console& console);

}  // namespace stagecraft::tools
