/// DecidedOrder is a schedule whose order comes column by column while its tasks run
/// (Dispatch::Decided). It proves each column when it is named: the tasks exist and have not run,
/// and all that they wait for has run in earlier columns. Tasks of one row in a column are a group.
///
/// The driver makes one for each step. What is left can always run: a task waits only for others of
/// the same schedule, which was proved as a whole.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "stagecraft/scheduler/model/cell.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/model/task_graph.h"

namespace stagecraft {

class DecidedOrder {
 public:
  /// `schedule`: has the tasks, and the row of each. `graph`: of its stages.
  /// Requires: validate() finds nothing in it.
  DecidedOrder(const Schedule& schedule, const StageGraph& graph);
  DecidedOrder(const DecidedOrder&) = delete;
  DecidedOrder& operator=(const DecidedOrder&) = delete;

  /// Adds a column. Errors: ScheduleInvalid for the first task that cannot be in it, with the
  /// reason, and for a column without tasks while some are left; nothing is added then.
  void add(const std::vector<Task>& column);

  [[nodiscard]] bool done() const { return left_.empty(); }
  /// Returns the columns that were added, as an array.
  [[nodiscard]] Schedule so_far() const;

 private:
  /// Errors: ScheduleInvalid for a task that cannot be in the next column.
  void require_may_run(const Task& task) const;
  [[noreturn]] void refuse(const Task& task, const std::string& why) const;
  [[nodiscard]] std::size_t row_of(const Task& task) const;

  const StageGraph graph_;
  const Schedule list_;
  const TaskGraph tasks_;
  std::set<Task> left_;
  std::vector<Schedule::Row> rows_;
  std::size_t columns_ = 0;
};

}  // namespace stagecraft
