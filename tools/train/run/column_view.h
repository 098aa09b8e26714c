/// column_view shows the columns of a step that is dispatched by task, for `train --step-by-step`.
#pragma once

#include <functional>

#include "stagecraft/actors/executor/step/dispatched_column.h"
#include "stagecraft/tools/common/console.h"

namespace stagecraft::tools {

/// Returns a function that prints a column to the console, and then waits for a line of standard
/// input. At its end it no longer waits. `json`: prints one object, {"event": "column", ...}.
/// Requires: while it runs, nothing else uses the console.
[[nodiscard]] std::function<void(const DispatchedColumn&)> column_view(Console& console, bool json);

}  // namespace stagecraft::tools
