#include "stagecraft/scheduler/model/task_graph.h"

namespace stagecraft {
namespace {

constexpr std::size_t kKinds = 5;  // Forward to Update

}  // namespace

TaskGraph::TaskGraph(const std::vector<Schedule::Row>& rows,
                     const StageGraph& stages,
                     int microbatches)
    : stages_(&stages), microbatches_(stages.microbatches_per_replica(microbatches)) {
  std::size_t tasks = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    row_begin_.push_back(static_cast<int>(entries_.size()));
    const Schedule::Row& row = rows[r];
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (!row[c].idle()) {
        entries_.push_back({static_cast<int>(r), static_cast<int>(c), &row[c]});
        tasks += row[c].tasks().size();
      }
    }
  }
  row_begin_.push_back(static_cast<int>(entries_.size()));

  // A table is proportional to the cells, unless a number in the file is far out of proportion to
  // them.
  const std::size_t slots =
      kKinds * static_cast<std::size_t>(stages.size()) * static_cast<std::size_t>(microbatches_);
  dense_ = slots <= 64 * tasks + 65536;
  if (dense_) {
    table_.assign(slots, kMissing);
  }
  for (std::size_t e = 0; e < entries_.size(); ++e) {
    for (const Task& task : entries_[e].cell->tasks()) {
      if (in_range(task)) {
        record(task, static_cast<int>(e));
        if (task.kind == CellKind::Update) {
          backwards_.try_emplace(task.stage);
        }
      }
    }
  }
  collect_backwards();
}

void TaskGraph::collect_backwards() {
  for (std::size_t e = 0; e < entries_.size() && !backwards_.empty(); ++e) {
    for (const Task& task : entries_[e].cell->tasks()) {
      const bool feeds = task.kind == CellKind::Backward || task.kind == CellKind::BackwardWeight;
      if (!feeds || !in_range(task) || find(task) != static_cast<int>(e)) {
        continue;
      }
      if (const auto found = backwards_.find(task.stage); found != backwards_.end()) {
        found->second.push_back(task);
      }
    }
  }
}

bool TaskGraph::in_range(const Task& task) const {
  const bool known = task.kind >= CellKind::Forward && task.kind <= CellKind::Update;
  return known && task.stage.value >= 0 && task.stage.value < stages_->size() &&
         task.microbatch.value >= 0 &&
         (task.microbatch.value < microbatches(task.stage) ||
          (task.kind == CellKind::Update && task.microbatch.value == 0));
}

std::size_t TaskGraph::key(const Task& task) const {
  const auto kind =
      static_cast<std::size_t>(task.kind) - static_cast<std::size_t>(CellKind::Forward);
  const auto stages = static_cast<std::size_t>(stages_->size());
  return (kind * stages + task.stage.index()) * static_cast<std::size_t>(microbatches_) +
         task.microbatch.index();
}

int TaskGraph::find(const Task& task) const {
  const std::size_t k = key(task);
  if (dense_) {
    return k < table_.size() ? table_[k] : kMissing;
  }
  const auto found = sparse_.find(k);
  return found == sparse_.end() ? kMissing : found->second;
}

void TaskGraph::record(const Task& task, int entry) {
  const std::size_t k = key(task);
  if (!dense_) {
    sparse_.try_emplace(k, entry);
  } else if (k < table_.size() && table_[k] == kMissing) {
    table_[k] = entry;  // keeps TK-2
  }
}

int TaskGraph::first_unmet(int entry, const std::vector<bool>& done) const {
  int unmet = kMissing;
  for (const Task& task : entries_[static_cast<std::size_t>(entry)].cell->tasks()) {
    if (!in_range(task) || (task.kind == CellKind::Update && find(task) != entry)) {
      continue;  // keeps TK-1, and TK-2 for updates, which wait for many tasks
    }
    for_each_prerequisite(task, [&](const Task& prerequisite) {
      const int holder = find(prerequisite);
      if (unmet == kMissing && holder != kMissing && holder != entry &&
          !done[static_cast<std::size_t>(holder)]) {
        unmet = holder;
      }
    });
  }
  return unmet;
}

}  // namespace stagecraft
