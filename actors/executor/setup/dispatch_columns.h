/// dispatch_columns finds the instructions of a plan that run the tasks of its schedule, so that
/// the driver can release them: column by column (Dispatch::PerTask), or in an order that is
/// decided while they run (Dispatch::Decided).
#pragma once

#include <cstddef>
#include <map>
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
  Task scheduled;                      ///< as the schedule has it
  std::vector<std::size_t> positions;  ///< in the rank's list: one for each part of the task
};

struct DispatchColumns {
  std::vector<std::vector<ReleasedTask>> columns;
  /// By rank: its vote, before which it waits, too.
  std::vector<ReleasedTask> votes;
};

/// DecidableTasks holds the tasks of a schedule whose order is decided while they run.
struct DecidableTasks {
  Schedule schedule;
  StageGraph graph;                                 ///< of its stages
  std::map<Task, std::vector<ReleasedTask>> tasks;  ///< by the task of the schedule
  std::vector<Rank> ranks;
};

/// Returns the columns of the schedule's array, which are the earliest ones (to_array.h), also if
/// the schedule itself is an array with others. `graph`: of its stages.
/// Ensures: every Run of the plan is in one column, and each column comes to its end.
/// Errors: ScheduleInvalid for a plan that waits in a column for tasks of later ones, because its
///         lists have chunks or transfers in another order; those of to_array.
[[nodiscard]] DispatchColumns dispatch_columns(const Plan& plan,
                                               const Schedule& schedule,
                                               const Layout& layout,
                                               const StageGraph& graph);

/// Returns the tasks of the schedule. `graph`: likewise.
/// Errors: ScheduleInvalid for a plan that runs tasks in chunks: their sums begin between tasks.
[[nodiscard]] DecidableTasks decidable_tasks(const Plan& plan,
                                             const Schedule& schedule,
                                             const Layout& layout,
                                             const StageGraph& graph);

}  // namespace stagecraft
