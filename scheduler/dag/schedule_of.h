/// schedule_of says as a schedule what the ranks of a strategy compute: a row for every rank list,
/// with its tasks in the order of its compute stream. It is the inverse of strategy_of.
///
/// Rules, the simulator, pictures and reports take schedules; a strategy comes to them this way.
#pragma once

#include "stagecraft/scheduler/dag/issue.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// Returns a list. Its rows stand in the order of their first ranks; a task of several chunks
/// stands where its last chunk does.
/// Requires: a DAG of stages without copies in the schedule.
[[nodiscard]] Schedule schedule_of(const IssuedDag& issued);

}  // namespace stagecraft
