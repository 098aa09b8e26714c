/// dispatch_columns finds the instructions of a plan that run the tasks of each column of its
/// schedule, so that the driver can release them column by column (Dispatch::PerTask).
#pragma once

#include <cstddef>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// ReleasedTask is a task on one rank.
struct ReleasedTask {
  Rank rank;
  Task task;                           ///< as the rank numbers it
  std::vector<std::size_t> positions;  ///< in the rank's list: one for each part of the task
};

struct DispatchColumns {
  std::vector<std::vector<ReleasedTask>> columns;
  /// By rank: its vote, before which it waits, too.
  std::vector<ReleasedTask> votes;
};

/// Returns the columns of the schedule's array. `graph`: of its stages.
/// Ensures: every Run of the plan is in one column.
/// Errors: ScheduleInvalid for a schedule whose tasks are not those of the plan.
[[nodiscard]] DispatchColumns dispatch_columns(const Plan& plan,
                                               const Schedule& schedule,
                                               const Layout& layout,
                                               const StageGraph& graph);

}  // namespace stagecraft
