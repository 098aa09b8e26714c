/// column_view shows the columns of a step that is dispatched by task, for `train --step-by-step`.
#pragma once

#include <functional>
#include <iosfwd>

#include "stagecraft/actors/executor/step/dispatched_column.h"
#include "stagecraft/tools/train/report/progress.h"

namespace stagecraft::tools {

/// Returns a function that reports a column, as text or as one object, {"event": "column", ...},
/// and then waits for a line of `in`. At the end of `in` it no longer waits.
/// Requires: both outlive it; while it runs, nothing else uses them.
[[nodiscard]] std::function<void(const DispatchedColumn&)> column_view(Progress& progress,
                                                                       std::istream& in);

}  // namespace stagecraft::tools
