/// show is `stagecraft dag show` without a model.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"
#include "stagecraft/tools/dag/show_options.h"

namespace stagecraft::tools {

/// Reads a strategy (strategy_text.h) or a schedule of any format, applies it to a bare stage graph
/// and shows the DAG.
/// Errors: UsageArgument, UsageFile; ScheduleParse for a file that is neither; ScheduleInvalid for
/// a strategy that cannot be applied; ScheduleParameter for a DAG too large for a picture.
[[nodiscard]] ExitCode show_dag(const std::vector<std::string>& words, Console& console);

/// Does the same for options that were parsed and checked.
void show_bare_dag(const DagShowOptions& options, Console& console);

}  // namespace stagecraft::tools
