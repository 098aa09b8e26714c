/// import is `stagecraft import`: it reports the contents of a model's file, the parts that are not
/// supported, and the places where it would be cut.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Runs the command. Returns Failed for a model with a part that is not supported.
/// Errors: those of load_model, open_data and describe_inputs; UsageArgument for a cut of a
///         model with unknown shapes; those of compile, except for unsupported parts, which are
///         printed; UsageFile for a file that cannot be written.
[[nodiscard]] ExitCode import_model(const std::vector<std::string>& words, Console& console);

}  // namespace stagecraft::tools
