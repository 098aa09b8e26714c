/// with_driver_row divides the tasks of a schedule where its stages have code on the driver, and
/// gives that code a row of its own, the last one.
///
///     0F0 0F1 .   0B0          0F0 0F1 .   0B0          1 -> 1 (head), 2 (matcher), 3 (loss)
///     .   1F0 1B0 1F1    ->    1F0 3F0 3B0 1B0 1F1 3F1 ..
///                              2F0 2F1 ..
///
/// A schedule does not list this code: its tasks follow from those of the stage. Checks of programs
/// use it. Pure.
/// DW-1: the result needs no order of its own: each row keeps the order of the given one, and the
///       driver's tasks run in the order in which their stages' tasks could begin.
#pragma once

#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/model/stage_parts.h"

namespace stagecraft {

/// Returns the schedule of the parts, in list form. `layout`: that of the schedule. `graph`: of the
/// parts, without copies. The tasks of an overlap group that has a divided stage follow each other.
/// Requires: validate() finds nothing in the schedule; some part is on the driver.
/// Errors: ScheduleParameter for a schedule that is too large for an array (to_array.h).
[[nodiscard]] Schedule with_driver_row(const Schedule& schedule,
                                       const Layout& layout,
                                       const StageGraph& graph,
                                       const StageParts& parts);

}  // namespace stagecraft
