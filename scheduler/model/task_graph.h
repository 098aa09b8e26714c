/// TaskGraph holds the tasks of a schedule and the tasks that each one waits for.
///
///     F(s,m)  waits for F(p,m) of every producer p
///     B, I    wait for their own F and for B or I of every consumer that owes a gradient
///     W(s,m)  waits for I(s,m) only, so this edge never crosses stages
///     U(s)    waits for every B and W of its stage
///
/// Between stages of different microbatch sizes, "m" stands for every microbatch that shares a
/// sample with it (microbatch_range.h). A task that does nothing (StageGraph::is_surplus) waits for
/// no other stage. If that task is I, W does all the work and waits for the gradients in its place.
///
/// It is built from the rows of a schedule and a stage graph; rules, simulator and lowering walk
/// it. It views both, which must outlive it. Any thread may read.
/// TK-1: tasks outside the grammar (a stage, microbatch or kind that does not exist) are not in it.
/// TK-2: if a task is listed twice, the first one counts.
/// TK-3: edges are not stored: they follow from a task's numbers. A valid schedule costs a table of
///       (kind, stage, microbatch) and nothing per edge.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "stagecraft/scheduler/model/microbatch_range.h"
#include "stagecraft/scheduler/model/row_run.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// Entry is a non-idle cell with its place: row and column (or position of a list).
struct Entry {
  int row = 0;
  int column = 0;
  const Cell* cell = nullptr;
};

class TaskGraph {
 public:
  static constexpr int kMissing = RowRun::kNothing;

  /// `microbatches`: the number of the whole step; each replica takes its share.
  TaskGraph(const std::vector<Schedule::Row>& rows, const StageGraph& stages, int microbatches);

  [[nodiscard]] const StageGraph& stages() const { return *stages_; }
  /// Returns the microbatches of each replica.
  [[nodiscard]] int microbatches() const { return microbatches_; }
  /// Returns how many microbatches of its own stage `s` has.
  [[nodiscard]] int microbatches(StageId s) const {
    return microbatches_ / stages_->microbatch_size(s);
  }
  /// Returns the entries row by row, left to right.
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] int rows() const { return static_cast<int>(row_begin_.size()) - 1; }
  [[nodiscard]] int row_begin(int row) const { return row_begin_[static_cast<std::size_t>(row)]; }
  [[nodiscard]] int row_end(int row) const { return row_begin(row + 1); }

  [[nodiscard]] const Entry& entry(int number) const {
    return entries_[static_cast<std::size_t>(number)];
  }
  /// Returns whether stage, microbatch and kind exist.
  [[nodiscard]] bool in_range(const Task& task) const;
  /// Returns the entry that holds the task, or kMissing. Requires: in_range(task).
  [[nodiscard]] int find(const Task& task) const;
  [[nodiscard]] bool has(CellKind kind, StageId s, Microbatch m) const {
    return find({kind, s, m}) != kMissing;
  }

  /// Calls visit(prerequisite) for each task that must end before `task` may start, present or not.
  template <class Visit>
  void for_each_prerequisite(const Task& task, Visit&& visit) const;

  /// Calls visit(microbatch) for the microbatches of stage `other` that share a sample with the
  /// task's.
  template <class Visit>
  void for_each_overlapping(const Task& task, StageId other, Visit&& visit) const;

  /// Calls visit(entry number) once for every entry that can start, after all entries for which it
  /// waits. No entry waits for a missing prerequisite. Returns how many entries were visited.
  template <class Visit>
  std::size_t walk(Visit&& visit) const {
    return walk(visit, [](int) { return kMissing; });
  }
  /// Does the same for entries that also wait for others: `awaited(entry)` returns one that has not
  /// been visited, or kMissing.
  template <class Visit, class Awaited>
  std::size_t walk(Visit&& visit, Awaited&& awaited) const;

 private:
  /// Calls visit(task) for the tasks that send a gradient to the backward of `task`'s stage and
  /// microbatch.
  template <class Visit>
  void for_each_gradient(const Task& task, Visit&& visit) const;
  [[nodiscard]] std::size_t key(const Task& task) const;
  void record(const Task& task, int entry);
  void collect_backwards();
  [[nodiscard]] int first_unmet(int entry, const std::vector<bool>& done) const;

  const StageGraph* stages_;
  int microbatches_;
  std::vector<Entry> entries_;
  std::vector<int> row_begin_;
  bool dense_ = true;
  std::vector<int> table_;                       // by key, if dense
  std::unordered_map<std::size_t, int> sparse_;  // when stages x microbatches dwarfs the cells
  std::unordered_map<StageId, std::vector<Task>> backwards_;  // B and W of stages that have updates
};

template <class Visit>
void TaskGraph::for_each_prerequisite(const Task& task, Visit&& visit) const {
  const StageId s = task.stage;
  switch (task.kind) {
    case CellKind::Forward:
      for (const StageId p : stages_->preds(s)) {
        for_each_overlapping(task, p, [&](Microbatch m) { visit(Task{CellKind::Forward, p, m}); });
      }
      return;
    case CellKind::Backward:
    case CellKind::BackwardInput:
      visit(Task{CellKind::Forward, s, task.microbatch});
      if (!stages_->is_surplus(task)) {
        for_each_gradient(task, visit);
      }
      return;
    case CellKind::BackwardWeight:
      visit(Task{CellKind::BackwardInput, s, task.microbatch});
      if (stages_->is_surplus({CellKind::BackwardInput, s, task.microbatch})) {
        for_each_gradient(task, visit);
      }
      return;
    case CellKind::Update:
      if (const auto found = backwards_.find(s); found != backwards_.end()) {
        for (const Task& backward : found->second) {
          visit(backward);
        }
      }
      return;
    case CellKind::Idle:
      return;
  }
}

template <class Visit>
void TaskGraph::for_each_gradient(const Task& task, Visit&& visit) const {
  for (const StageId c : stages_->succs(task.stage)) {
    if (stages_->sends_gradient(c, task.stage)) {
      for_each_overlapping(task, c, [&](Microbatch m) {
        const bool split = has(CellKind::BackwardInput, c, m);
        visit(Task{split ? CellKind::BackwardInput : CellKind::Backward, c, m});
      });
    }
  }
}

template <class Visit>
void TaskGraph::for_each_overlapping(const Task& task, StageId other, Visit&& visit) const {
  const auto [begin, end] = overlapping(
      task.microbatch, stages_->microbatch_size(task.stage), stages_->microbatch_size(other));
  for (Microbatch m(begin); m.value < end; ++m.value) {
    visit(m);
  }
}

template <class Visit, class Awaited>
std::size_t TaskGraph::walk(Visit&& visit, Awaited&& awaited) const {
  std::vector<bool> done(entries_.size());
  RowRun run(entries_.size(), static_cast<std::size_t>(rows()));
  return run(
      {row_begin_.begin(), row_begin_.end() - 1},
      std::span(row_begin_).subspan(1),
      [&](int entry) {
        const int unmet = first_unmet(entry, done);
        return unmet == kMissing ? awaited(entry) : unmet;
      },
      [&](int entry) {
        visit(entry);
        done[static_cast<std::size_t>(entry)] = true;
      });
}

}  // namespace stagecraft
