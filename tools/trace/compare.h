/// `stagecraft trace compare PLAN TRACE`: a schedule file against what a traced run made of it.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/console.h"
#include "stagecraft/tools/exit_code.h"

namespace stagecraft::tools {

/// Good however far the two are apart.
/// Errors: UsageFile for a file that cannot be read, a trace that was cut off or is of another
/// schedule; ScheduleParse; ScheduleInvalid for a plan that breaks a rule.
[[nodiscard]] ExitCode compare_trace(const std::vector<std::string>& words, Console& console);

}  // namespace stagecraft::tools
