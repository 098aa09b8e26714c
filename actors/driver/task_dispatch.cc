#include "stagecraft/actors/driver/task_dispatch.h"

#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "stagecraft/actors/executor/step/dispatch_tags.h"
#include "stagecraft/actors/executor/step/dispatched_values.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/log.h"
#include "stagecraft/base/process/process_end.h"

namespace stagecraft {
namespace {

at::Tensor text_tensor(const std::string& text) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::memcpy(tensor.mutable_data_ptr(), text.data(), text.size());
  return tensor;
}

}  // namespace

void TaskDispatch::begin(const Tag& step, bool updates) {
  thread_.post([this, step, updates] {
    try {
      walk(step, updates);
    } catch (const std::exception& error) {
      // The step has ended, and its future tells why.
      log(Level::Debug, "dispatch ended", {{"why", error.what()}});
    }
  });
}

void TaskDispatch::walk(const Tag& step, bool updates) const {
  std::string why;  // to end the step
  for (std::size_t c = 0; c < columns_->columns.size(); ++c) {
    if (columns_->columns[c].empty()) {
      continue;
    }
    if (!why.empty()) {
      return release(step, columns_->columns[c].front(), why);
    }
    const DispatchedColumn column = run(step, c);
    if (look_) {
      const process_end::Elsewhere in_the_users_code;
      try {
        look_(column);
      } catch (const std::exception& error) {
        why = fmt::format("on_column threw in column {}: {}", c, error.what());
      } catch (...) {
        why = fmt::format("on_column threw in column {}", c);
      }
    }
  }
  for (const ReleasedTask& vote : columns_->votes) {
    if (updates && !why.empty()) {
      return release(step, vote, why);
    }
    if (updates) {
      release(step, vote, "");
    }
  }
}

DispatchedColumn TaskDispatch::run(const Tag& step, std::size_t number) const {
  const std::vector<ReleasedTask>& tasks = columns_->columns[number];
  std::vector<std::vector<Future<at::Tensor>>> done;
  for (const ReleasedTask& task : tasks) {
    std::vector<Future<at::Tensor>>& parts = done.emplace_back();
    for (const std::size_t position : task.positions) {
      parts.push_back(here_->receive(task.rank, done_tag(step, position)));
    }
  }
  for (const ReleasedTask& task : tasks) {
    for (const std::size_t position : task.positions) {
      here_->send(task.rank, release_tag(step, position), text_tensor(""));
    }
  }
  DispatchedColumn column{.number = number, .columns = columns_->columns.size(), .tasks = {}};
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    DispatchedTask& task =
        column.tasks.emplace_back(DispatchedTask{tasks[t].rank, tasks[t].task, {}});
    for (const Future<at::Tensor>& part : done[t]) {
      at::Tensor packed;
      {
        const process_end::Elsewhere waiting;
        packed = part.get();
      }
      for (DispatchedValue& value : unpack_values(packed)) {
        task.values.push_back(std::move(value));
      }
    }
  }
  return column;
}

/// Releases an instruction, or ends the step there.
void TaskDispatch::release(const Tag& step, const ReleasedTask& at, const std::string& why) const {
  for (const std::size_t position : at.positions) {
    here_->send(at.rank, release_tag(step, position), text_tensor(why));
  }
}

}  // namespace stagecraft
