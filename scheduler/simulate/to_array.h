/// to_array lays out the rows of a schedule in columns.
///
///     0F0 0F1 0B0 0B1          0F0 0F1 .   0B0 .   0B1
///     1F0 1B0 1F1 1B1    ->    .   1F0 1B0 1F1 1B1 .
///
/// Builders, the command and drawings use it. The columns are the start times of a simulation in
/// which each entry takes one unit of time. Pure; any thread.
#pragma once

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// Returns the schedule with every entry in the earliest column that its row's order and its data
/// allow; headers stay. Keeps A-1.
/// Errors: ScheduleInvalid if entries wait for each other forever (validate() names them);
/// ScheduleParameter if the array would have more than kMaxCells cells.
[[nodiscard]] Schedule to_array(const Schedule& schedule, const StageGraph& graph);

/// Returns whether the array would have at most kMaxCells cells: rows times columns can be the
/// square of the tasks. Errors: ScheduleInvalid, as to_array().
[[nodiscard]] bool fits_array(const Schedule& schedule, const StageGraph& graph);

}  // namespace stagecraft
