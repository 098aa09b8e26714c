/// V24 to V26: a stage is updated at most once, after its last backward, and runs no task
/// afterwards.
#include <unordered_map>

#include <fmt/format.h>

#include "stagecraft/scheduler/rules/parts/rule_input.h"

namespace stagecraft::rules {
namespace {

/// The update of one stage, and the first backward found after it.
struct StageUpdate {
  const Entry* entry = nullptr;
  const Entry* later_entry = nullptr;
  Task later;
};

/// Positions of different lists cannot be compared; columns of an array can.
bool comparable(const RuleInput& in, const Entry& a, const Entry& b) {
  return a.row == b.row || in.schedule.form() == Schedule::Form::Array;
}

}  // namespace

void check_updates(const RuleInput& in, Violations& out) {
  std::unordered_map<StageId, StageUpdate> updates;
  for_each_task(in, [&](const Entry& entry, const Task& task) {
    if (task.kind != CellKind::Update) {
      return;
    }
    const auto [found, inserted] = updates.try_emplace(task.stage, StageUpdate{.entry = &entry});
    if (!inserted) {
      const Entry& first = *found->second.entry;
      Violation v = at("V26", entry, task);
      v.cause = std::to_string(task.stage.value);
      v.missing = where(in, first);
      v.cells.emplace_back(first.row, first.column);
      v.message = fmt::format("stage {} is updated at {} and again at {}; keep one update per step",
                              task.stage.value,
                              where(in, first),
                              where(in, entry));
      out.push_back(std::move(v));
    }
  });
  if (updates.empty()) {
    return;
  }
  for_each_task(in, [&](const Entry& entry, const Task& task) {
    const auto found = updates.find(task.stage);
    if (task.kind == CellKind::Update || found == updates.end()) {
      return;
    }
    StageUpdate& update = found->second;
    if (!comparable(in, entry, *update.entry) || entry.column < update.entry->column) {
      return;
    }
    const bool feeds_update =
        task.kind == CellKind::Backward || task.kind == CellKind::BackwardWeight;
    if (feeds_update &&
        (update.later_entry == nullptr || entry.column < update.later_entry->column)) {
      update.later_entry = &entry;
      update.later = task;
    }
    Violation v = at("V25", entry, task);
    v.cause = std::to_string(task.stage.value);
    v.missing = fmt::format("{}U", task.stage.value);
    v.cells.emplace_back(update.entry->row, update.entry->column);
    v.message =
        fmt::format("{} at {} comes after the update of stage {} ({}); move it before the update",
                    to_string(task),
                    where(in, entry),
                    task.stage.value,
                    where(in, *update.entry));
    out.push_back(std::move(v));
  });
  for (StageId s; s.value < in.graph.size(); ++s.value) {
    const auto found = updates.find(s);
    if (found != updates.end() && found->second.later_entry != nullptr) {
      const StageUpdate& update = found->second;
      Violation v = at("V24", *update.entry, Task{CellKind::Update, s, Microbatch(0)});
      v.missing = to_string(update.later);
      v.cells.emplace_back(update.later_entry->row, update.later_entry->column);
      v.message = fmt::format(
          "stage {} is updated at {}, before {} ({}) has added its gradient; move {}U to the end",
          s.value,
          where(in, *update.entry),
          to_string(update.later),
          where(in, *update.later_entry),
          s.value);
      out.push_back(std::move(v));
    }
  }
}

}  // namespace stagecraft::rules
