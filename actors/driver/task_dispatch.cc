#include "stagecraft/actors/driver/task_dispatch.h"

#include <cstdint>
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/ops/full.h>
#include <fmt/format.h>

#include "stagecraft/actors/executor/step/dispatch_tags.h"
#include "stagecraft/actors/executor/step/dispatched_values.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/log.h"
#include "stagecraft/base/process/process_end.h"
#include "stagecraft/futures/transport/byte_tensor.h"
#include "stagecraft/scheduler/model/decided_order.h"

namespace stagecraft {
namespace {

at::Tensor position_tensor(std::int64_t position) {
  return at::full({1}, position, at::kLong);
}

/// Calls the user's code. Returns why the step ends if it throws, else nothing.
template <class Work>
std::string thrown_by(std::string_view who, std::size_t column, Work&& work) {
  try {
    work();
    return {};
  } catch (const std::exception& error) {
    return fmt::format("{} threw in column {}: {}", who, column + 1, error.what());
  } catch (...) {
    return fmt::format("{} threw in column {}", who, column + 1);
  }
}

}  // namespace

void TaskDispatch::begin(const Tag& step) {
  thread_.post([this, step] {
    try {
      if (decidable_ != nullptr) {
        walk_decided(step);
      } else {
        walk_columns(step);
      }
    } catch (const Error& error) {
      // A future of the walk has failed: the step has ended, and its own future tells why.
      log(Level::Debug, "dispatch ended", {{"why", error.what()}});
    }
  });
}

void TaskDispatch::walk_columns(const Tag& step) const {
  std::string why;  // to end the step
  for (std::size_t c = 0; c < columns_->columns.size(); ++c) {
    const std::vector<ReleasedTask>& tasks = columns_->columns[c];
    if (tasks.empty()) {
      continue;
    }
    if (!why.empty()) {
      release(step, tasks.front(), why);
      return;
    }
    why = run(step, c, tasks, [&](const ReleasedTask& task) { release(step, task, ""); }).second;
  }
  for (const ReleasedTask& vote : columns_->votes) {
    release(step, vote, why);
    if (!why.empty()) {
      return;
    }
  }
}

void TaskDispatch::walk_decided(const Tag& step) const {
  DecidedOrder order(decidable_->schedule, decidable_->graph);
  std::map<Rank, std::size_t> named;  // how many tasks a rank has got
  const auto name = [&](Rank rank, const at::Tensor& what) {
    here_->send(rank, release_tag(step, named[rank]++), what);
  };
  const auto release_next = [&](const ReleasedTask& task) {
    name(task.rank, position_tensor(static_cast<std::int64_t>(task.positions.front())));
  };
  DispatchedColumn last;
  std::string why;
  for (std::size_t c = 0; !order.done() && why.empty(); ++c) {
    std::vector<Task> next;
    why = thrown_by("decide", c, [&] {
      const process_end::Elsewhere in_the_users_code;
      next = decide_(order.so_far(), last);
    });
    try {
      if (why.empty()) {
        order.add(next);
      }
    } catch (const Error& error) {
      why = "decide named a column that cannot run: " + error.message();
    }
    if (why.empty()) {
      std::vector<ReleasedTask> tasks;
      for (const Task& task : next) {
        const std::vector<ReleasedTask>& on_ranks = decidable_->tasks.at(task);
        tasks.insert(tasks.end(), on_ranks.begin(), on_ranks.end());
      }
      std::tie(last, why) = run(step, c, tasks, release_next);
    }
  }
  for (const Rank rank : decidable_->ranks) {
    name(rank, why.empty() ? position_tensor(-1) : byte_tensor(why));
  }
}

std::pair<DispatchedColumn, std::string> TaskDispatch::run(const Tag& step,
                                                           std::size_t number,
                                                           const std::vector<ReleasedTask>& tasks,
                                                           const Release& release) const {
  const std::vector<Made> made = made_by(step, tasks, release);
  DispatchedColumn column{
      .number = number, .columns = columns_ == nullptr ? 0 : columns_->columns.size(), .tasks = {}};
  if (look_ || decide_) {
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      column.tasks.push_back(shown(step, tasks[t], made[t]));
    }
  }
  std::string why = thrown_by("on_column", number, [&] {
    if (look_) {
      const process_end::Elsewhere in_the_users_code;
      look_(column);
    }
  });
  return {std::move(column), std::move(why)};
}

std::vector<TaskDispatch::Made> TaskDispatch::made_by(const Tag& step,
                                                      const std::vector<ReleasedTask>& tasks,
                                                      const Release& release) const {
  std::vector<std::vector<Future<at::Tensor>>> done;
  for (const ReleasedTask& task : tasks) {
    std::vector<Future<at::Tensor>>& parts = done.emplace_back();
    for (const std::size_t position : task.positions) {
      parts.push_back(here_->receive(task.rank, done_tag(step, position)));
    }
  }
  for (const ReleasedTask& task : tasks) {
    release(task);
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

DispatchedTask TaskDispatch::shown(const Tag& step,
                                   const ReleasedTask& task,
                                   const Made& made) const {
  DispatchedTask shown{
      .rank = task.rank, .task = task.task, .scheduled = task.scheduled, .values = {}};
  for (std::size_t part = 0; part < made.size(); ++part) {
    const std::vector<DispatchedValue> values = unpack_values(made[part]);
    shown.values.insert(shown.values.end(), values.begin(), values.end());
    if (values_ && !values.empty()) {
      const std::vector<Future<at::Tensor>> tensors = values_(
          {step.plan, task.rank, step.submission, static_cast<std::int32_t>(task.positions[part])},
          values.size());
      shown.tensors.insert(shown.tensors.end(), tensors.begin(), tensors.end());
    }
  }
  return shown;
}

/// Releases a task, or ends the step there.
void TaskDispatch::release(const Tag& step, const ReleasedTask& at, const std::string& why) const {
  for (const std::size_t position : at.positions) {
    here_->send(at.rank, release_tag(step, position), byte_tensor(why));
  }
}

}  // namespace stagecraft
