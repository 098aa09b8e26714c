/// `stagecraft trace`: what a run's trace file says. `trace compare PLAN TRACE` holds it against a
/// schedule.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/exit_code.h"

namespace stagecraft::tools {

/// Errors: UsageArgument for wrong words; those of reading the files; UsageFile for a trace of
/// another schedule.
[[nodiscard]] ExitCode trace(const std::vector<std::string>& arguments);

}  // namespace stagecraft::tools
