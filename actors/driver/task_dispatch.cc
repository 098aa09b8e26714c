#include "stagecraft/actors/driver/task_dispatch.h"

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/actors/executor/step/dispatch_tags.h"
#include "stagecraft/actors/executor/step/dispatched_values.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/log.h"
#include "stagecraft/base/process/process_end.h"
#include "stagecraft/futures/transport/byte_tensor.h"

namespace stagecraft {

void TaskDispatch::begin(const Tag& step) {
  thread_.post([this, step] {
    try {
      walk(step);
    } catch (const Error& error) {
      // A future of the walk has failed: the step has ended, and its own future tells why.
      log(Level::Debug, "dispatch ended", {{"why", error.what()}});
    }
  });
}

void TaskDispatch::walk(const Tag& step) const {
  std::string why;  // to end the step
  for (std::size_t c = 0; c < columns_->columns.size(); ++c) {
    if (columns_->columns[c].empty()) {
      continue;
    }
    if (!why.empty()) {
      release(step, columns_->columns[c].front(), why);
      return;
    }
    const std::vector<Made> made = run(step, c);
    try {
      if (look_) {
        const DispatchedColumn seen = column(c, made);
        const process_end::Elsewhere in_the_users_code;
        look_(seen);
      }
    } catch (const std::exception& error) {
      why = fmt::format("on_column threw in column {}: {}", c + 1, error.what());
    } catch (...) {
      why = fmt::format("on_column threw in column {}", c + 1);
    }
  }
  for (const ReleasedTask& vote : columns_->votes) {
    release(step, vote, why);
    if (!why.empty()) {
      return;
    }
  }
}

std::vector<TaskDispatch::Made> TaskDispatch::run(const Tag& step, std::size_t number) const {
  const std::vector<ReleasedTask>& tasks = columns_->columns[number];
  std::vector<std::vector<Future<at::Tensor>>> done;
  for (const ReleasedTask& task : tasks) {
    std::vector<Future<at::Tensor>>& parts = done.emplace_back();
    for (const std::size_t position : task.positions) {
      parts.push_back(here_->receive(task.rank, done_tag(step, position)));
    }
  }
  for (const ReleasedTask& task : tasks) {
    release(step, task, "");
  }
  const process_end::Elsewhere waiting;
  std::vector<Made> made;
  for (const std::vector<Future<at::Tensor>>& parts : done) {
    Made& of_task = made.emplace_back();
    for (const Future<at::Tensor>& part : parts) {
      of_task.push_back(part.get());
    }
  }
  return made;
}

DispatchedColumn TaskDispatch::column(std::size_t number, const std::vector<Made>& made) const {
  const std::vector<ReleasedTask>& tasks = columns_->columns[number];
  DispatchedColumn column{.number = number, .columns = columns_->columns.size(), .tasks = {}};
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    column.tasks.push_back({.rank = tasks[t].rank, .task = tasks[t].task, .values = {}});
    for (const at::Tensor& packed : made[t]) {
      for (DispatchedValue& value : unpack_values(packed)) {
        column.tasks.back().values.push_back(std::move(value));
      }
    }
  }
  return column;
}

/// Releases a task, or ends the step there.
void TaskDispatch::release(const Tag& step, const ReleasedTask& at, const std::string& why) const {
  for (const std::size_t position : at.positions) {
    here_->send(at.rank, release_tag(step, position), byte_tensor(why));
  }
}

}  // namespace stagecraft
