/// dag_input reads what `stagecraft dag show` shows: a strategy, or a schedule of any format.
#pragma once

#include <string>
#include <variant>

#include "stagecraft/scheduler/strategy/strategy.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/dag/show_options.h"

namespace stagecraft::tools {

/// A strategy already has the microbatches of --microbatches.
using DagInput = std::variant<Strategy, ScheduleFile>;

/// Reads the file of the options. A file of Piper's directives is a strategy, unless --from says
/// otherwise.
/// Errors: UsageFile; ScheduleParse for a file that is neither; UsageArgument for --stages and
/// --microbatches that a schedule or a split decides.
[[nodiscard]] DagInput read_dag_input(const DagShowOptions& options, Console& console);

/// Returns the strategy that the schedule stands for. Errors: ScheduleInvalid with the first rule
/// that it breaks.
[[nodiscard]] Strategy strategy_of_file(const ScheduleFile& file);

}  // namespace stagecraft::tools
