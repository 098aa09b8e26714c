/// TaskDispatch releases the tasks of a step, one column of the schedule after the other
/// (Dispatch::PerTask), or in columns that the user's code names while they run
/// (Dispatch::Decided). The ranks run the same lists as without it, and wait before each task.
///
///   column 0: release, release ... done, done    look    column 1: ...    last: release the votes
///
/// A crew has one, and its driver begins it with each training step. The columns of a step run on a
/// thread of its own, because looking at them may take any time; its destructor waits for that.
/// CW-1: a column begins when all tasks of the previous one have run, and whoever looks has
///       returned. The end of the step's epoch ends the walk.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/actors/executor/setup/dispatch_columns.h"
#include "stagecraft/actors/executor/setup/rank_setup.h"
#include "stagecraft/actors/executor/step/dispatched_column.h"
#include "stagecraft/futures/collective/job_thread.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

class TaskDispatch {
 public:
  /// `job`: has columns, or tasks whose order is decided.
  TaskDispatch(std::shared_ptr<Transport> here, const Job& job)
      : here_(std::move(here)),
        columns_(job.columns),
        decidable_(job.decidable),
        look_(job.options.on_column),
        decide_(job.options.decide),
        values_(job.task_values) {}

  /// Releases the tasks of a step that has been ordered.
  void begin(const Tag& step);

 private:
  /// Packed descriptions of what a task has made, by its parts.
  using Made = std::vector<at::Tensor>;

  using Release = std::function<void(const ReleasedTask&)>;

  void walk_columns(const Tag& step) const;
  void walk_decided(const Tag& step) const;
  /// Runs the tasks of a column and shows them. Returns the column, or why the step ends.
  [[nodiscard]] std::pair<DispatchedColumn, std::string> run(const Tag& step,
                                                             std::size_t number,
                                                             const std::vector<ReleasedTask>& tasks,
                                                             const Release& release) const;
  [[nodiscard]] std::vector<Made> made_by(const Tag& step,
                                          const std::vector<ReleasedTask>& tasks,
                                          const Release& release) const;
  [[nodiscard]] DispatchedTask shown(const Tag& step,
                                     const ReleasedTask& task,
                                     const Made& made) const;
  void release(const Tag& step, const ReleasedTask& at, const std::string& why) const;

  const std::shared_ptr<Transport> here_;
  const std::shared_ptr<const DispatchColumns> columns_;
  const std::shared_ptr<const DecidableTasks> decidable_;
  const decltype(TrainerOptions::on_column) look_;
  const decltype(TrainerOptions::decide) decide_;
  const decltype(Job::task_values) values_;
  JobThread thread_;
};

}  // namespace stagecraft
