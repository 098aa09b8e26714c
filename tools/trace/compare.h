/// compare is `stagecraft trace compare PLAN TRACE`: it compares a schedule file with the steps of
/// a traced run.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Runs the command. Returns Good for any difference.
/// Errors: UsageFile for a file that cannot be read, and for a trace that was cut off or belongs to
///         another schedule; ScheduleParse; ScheduleInvalid for a plan that breaks a rule.
[[nodiscard]] ExitCode compare_trace(const std::vector<std::string>& words, Console& console);

}  // namespace stagecraft::tools
