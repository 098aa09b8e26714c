/// show is `stagecraft dag show`.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Reads a strategy (strategy_text.h) or a schedule of any format, applies it to a bare stage graph
/// and prints the DAG.
/// Errors: UsageArgument, UsageFile; ScheduleParse for a file that is neither; ScheduleInvalid for
/// a strategy that cannot be applied.
[[nodiscard]] ExitCode show_dag(const std::vector<std::string>& words, Console& console);

}  // namespace stagecraft::tools
