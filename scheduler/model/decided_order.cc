#include "stagecraft/scheduler/model/decided_order.h"

#include <algorithm>
#include <iterator>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

/// The most tasks that a message names.
constexpr std::size_t kMostNamed = 6;

}  // namespace

DecidedOrder::DecidedOrder(const Schedule& schedule, const StageGraph& graph)
    : graph_(graph),
      list_(schedule.to_list()),
      tasks_(list_.rows(), graph_, list_.microbatches()),
      rows_(list_.rows().size()) {
  for (const Schedule::Row& row : list_.rows()) {
    for (const Cell& cell : row) {
      for (const Task& task : cell.tasks()) {
        if (task.kind != CellKind::Update) {
          left_.insert(task);
        }
      }
    }
  }
}

void DecidedOrder::add(const std::vector<Task>& column) {
  if (column.empty() && !done()) {
    std::vector<std::string> some;
    for (const Task& task : left_) {
      if (some.size() < kMostNamed) {
        some.push_back(to_string(task));
      }
    }
    throw Error(Errc::ScheduleInvalid,
                fmt::format("column {} has no task, and {} have not run: {}{}",
                            columns_ + 1,
                            left_.size(),
                            fmt::join(some, ", "),
                            left_.size() > some.size() ? ", ..." : ""));
  }
  std::vector<std::vector<Task>> by_row(rows_.size());
  for (const Task& task : column) {
    require_may_run(task);
    std::vector<Task>& row = by_row[row_of(task)];
    if (std::ranges::find(row, task) != row.end()) {
      refuse(task, "it is named twice");
    }
    row.push_back(task);
  }
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    const std::vector<Task>& tasks = by_row[row];
    rows_[row].push_back(tasks.empty()       ? Cell()
                         : tasks.size() == 1 ? Cell(tasks.front())
                                             : Cell(tasks));
  }
  for (const Task& task : column) {
    left_.erase(task);
  }
  ++columns_;
}

void DecidedOrder::refuse(const Task& task, const std::string& why) const {
  throw Error(Errc::ScheduleInvalid,
              fmt::format("column {} cannot have {}: {}", columns_ + 1, to_string(task), why));
}

void DecidedOrder::require_may_run(const Task& task) const {
  if (task.kind == CellKind::Update) {
    refuse(task, "updates follow when all other tasks have run");
  }
  if (!tasks_.in_range(task) || tasks_.find(task) == TaskGraph::kMissing) {
    refuse(task, "the schedule has no such task");
  }
  if (!left_.contains(task)) {
    refuse(task, "it has run");
  }
  tasks_.for_each_prerequisite(task, [&](const Task& before) {
    if (left_.contains(before)) {
      refuse(task,
             fmt::format("it waits for {}, which has not run; name that in an earlier column",
                         to_string(before)));
    }
  });
}

std::size_t DecidedOrder::row_of(const Task& task) const {
  return static_cast<std::size_t>(tasks_.entry(tasks_.find(task)).row);
}

Schedule DecidedOrder::so_far() const {
  return {Schedule::Form::Array, rows_, list_.headers()};
}

}  // namespace stagecraft
