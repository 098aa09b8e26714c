#include "stagecraft/scheduler/notes/column_order.h"

#include <algorithm>

#include "stagecraft/scheduler/model/task_graph.h"

namespace stagecraft {
namespace {

bool is_early(const TaskGraph& tasks, const Entry& entry, const Task& task) {
  if (!tasks.in_range(task) || task.kind == CellKind::Update) {
    return false;
  }
  bool early = false;
  tasks.for_each_prerequisite(task, [&](const Task& needed) {
    const int holder = tasks.find(needed);
    early |= holder != TaskGraph::kMissing && tasks.entry(holder).column >= entry.column;
  });
  return early;
}

}  // namespace

std::size_t count_early_cells(const Schedule& array, const StageGraph& graph) {
  const TaskGraph tasks(array.rows(), graph, array.microbatches());
  return static_cast<std::size_t>(std::ranges::count_if(tasks.entries(), [&](const Entry& entry) {
    return std::ranges::any_of(entry.cell->tasks(),
                               [&](const Task& task) { return is_early(tasks, entry, task); });
  }));
}

}  // namespace stagecraft
