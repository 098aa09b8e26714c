/// TaskDispatch releases the tasks of a step, one column of the schedule after the other
/// (Dispatch::PerTask). The ranks run the same lists as without it, and wait before each task.
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
#include "stagecraft/actors/executor/step/dispatched_column.h"
#include "stagecraft/futures/collective/job_thread.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

class TaskDispatch {
 public:
  /// `look`: TrainerOptions::on_column.
  TaskDispatch(std::shared_ptr<Transport> here,
               std::shared_ptr<const DispatchColumns> columns,
               std::function<void(const DispatchedColumn&)> look)
      : here_(std::move(here)), columns_(std::move(columns)), look_(std::move(look)) {}

  /// Releases the tasks of a step that has been ordered.
  void begin(const Tag& step);

 private:
  /// Packed descriptions of what a task has made, by its parts.
  using Made = std::vector<at::Tensor>;

  void walk(const Tag& step) const;
  [[nodiscard]] std::vector<Made> run(const Tag& step, std::size_t number) const;
  [[nodiscard]] DispatchedColumn column(std::size_t number, const std::vector<Made>& made) const;
  void release(const Tag& step, const ReleasedTask& at, const std::string& why) const;

  const std::shared_ptr<Transport> here_;
  const std::shared_ptr<const DispatchColumns> columns_;
  const std::function<void(const DispatchedColumn&)> look_;
  JobThread thread_;
};

}  // namespace stagecraft
