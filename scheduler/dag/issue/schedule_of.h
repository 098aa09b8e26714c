/// schedule_of writes the computation of a strategy's ranks as a schedule: a row for every rank
/// list, with its tasks in the order of its compute stream. It is the inverse of strategy_of.
///
/// Rules, the simulator, pictures and reports take schedules. schedule_of lets them take
/// strategies.
#pragma once

#include "stagecraft/scheduler/dag/issue/issue.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// Returns a list. Its rows are in the order of their first ranks. A task of several chunks has the
/// place of its last chunk.
/// Requires: a DAG of stages without copies in the schedule.
[[nodiscard]] Schedule schedule_of(const IssuedDag& issued);

}  // namespace stagecraft
