/// V07 to V12: every task sits on its stage's row, once, and none is missing.
#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/scheduler/rules/rules.h"

namespace stagecraft::rules {
namespace {

/// How many different microbatches of each stage have a forward, and how many any backward.
struct Present {
  std::vector<int> forward;
  std::vector<int> backward;
};

/// Whether `task` stands for its (stage, microbatch)'s backward: B before I before W, so that one
/// counts.
bool represents_backward(const TaskGraph& tasks, const Task& task) {
  const auto has = [&](CellKind kind) { return tasks.has(kind, task.stage, task.microbatch); };
  switch (task.kind) {
    case CellKind::Backward:
      return true;
    case CellKind::BackwardInput:
      return !has(CellKind::Backward);
    case CellKind::BackwardWeight:
      return !has(CellKind::Backward) && !has(CellKind::BackwardInput);
    default:
      return false;
  }
}

bool is_first(const Input& in, const Entry& entry, const Task& task) {
  return &in.tasks.entry(in.tasks.find(task)) == &entry;
}

Present count_present(const Input& in) {
  const auto stages = static_cast<std::size_t>(in.graph.size());
  Present present{std::vector<int>(stages, 0), std::vector<int>(stages, 0)};
  for_each_task(in, [&](const Entry& entry, const Task& task) {
    if (task.kind == CellKind::Update || !is_first(in, entry, task)) {
      return;
    }
    present.forward[task.stage.index()] += task.kind == CellKind::Forward ? 1 : 0;
    present.backward[task.stage.index()] += represents_backward(in.tasks, task) ? 1 : 0;
  });
  return present;
}

/// The first few microbatches that `absent` holds for, and how many there are in all.
template <class Absent>
std::string microbatch_list(int microbatches, int missing, Absent&& absent) {
  constexpr int kListed = 8;
  std::string text;
  int listed = 0;
  for (Microbatch m; m.value < microbatches && listed < std::min(kListed, missing); ++m.value) {
    if (absent(m)) {
      text += fmt::format("{}{}", listed++ == 0 ? "" : ", ", m.value);
    }
  }
  return missing > listed ? fmt::format("{}, ... ({} in all)", text, missing) : text;
}

Violation missing_tasks(
    const Input& in, const char* rule, StageId s, std::string microbatches, const char* what) {
  Violation v;
  v.rule = rule;
  v.row = in.placement.row(s).value_or(Violation::kNowhere);
  v.missing = fmt::format("{} of microbatch {}", what, microbatches);
  v.message = fmt::format("stage {} lacks the {} of microbatch {}; add {} cell for each",
                          s.value,
                          what,
                          microbatches,
                          v.row == Violation::kNowhere ? "a row for the stage with a"
                                                       : fmt::format("to row {} a", v.row));
  return v;
}

void check_missing(const Input& in, Violations& out) {
  const Present present = count_present(in);
  const int microbatches = in.tasks.microbatches();
  for (StageId s; s.value < in.graph.size(); ++s.value) {
    const int forwards = microbatches - present.forward[s.index()];
    if (forwards > 0) {
      out.push_back(missing_tasks(
          in,
          "V09",
          s,
          microbatch_list(microbatches,
                          forwards,
                          [&](Microbatch m) { return !in.tasks.has(CellKind::Forward, s, m); }),
          "forward"));
    }
  }
  for (StageId s; s.value < in.graph.size() && !in.options.forward_only; ++s.value) {
    const int backwards = microbatches - present.backward[s.index()];
    if (backwards > 0 && in.graph.has_backward(s)) {
      out.push_back(
          missing_tasks(in,
                        "V10",
                        s,
                        microbatch_list(microbatches,
                                        backwards,
                                        [&](Microbatch m) {
                                          return !in.tasks.has(CellKind::Backward, s, m) &&
                                                 !in.tasks.has(CellKind::BackwardInput, s, m) &&
                                                 !in.tasks.has(CellKind::BackwardWeight, s, m);
                                        }),
                        "backward (B, or I and W)"));
    }
  }
}

void check_duplicates(const Input& in, Violations& out) {
  for_each_task(in, [&](const Entry& entry, const Task& task) {
    if (task.kind == CellKind::Update || is_first(in, entry, task)) {
      return;  // updates have a rule of their own (V26), members of one group too (V28)
    }
    const Entry& first = in.tasks.entry(in.tasks.find(task));
    Violation v = at("V08", entry, task);
    v.missing = where(in, first);
    v.cells.emplace_back(first.row, first.column);
    v.message = fmt::format("{} is at {} and again at {}; a task runs once, remove one",
                            to_string(task),
                            where(in, first),
                            where(in, entry));
    out.push_back(std::move(v));
  });
}

/// A whole backward stands alone, a split one has both halves.
void check_backward_form(const Input& in, Violations& out) {
  for_each_task(in, [&](const Entry& entry, const Task& task) {
    const bool input = task.kind == CellKind::BackwardInput;
    if ((!input && task.kind != CellKind::BackwardWeight) || !is_first(in, entry, task)) {
      return;
    }
    const Task whole{CellKind::Backward, task.stage, task.microbatch};
    const Task other{
        input ? CellKind::BackwardWeight : CellKind::BackwardInput, task.stage, task.microbatch};
    const bool paired = in.tasks.find(other) != TaskGraph::kMissing;
    if (in.tasks.find(whole) != TaskGraph::kMissing) {
      if (input || !paired) {  // once per (stage, microbatch)
        Violation v = at("V11", entry, task);
        v.missing = to_string(whole);
        v.message = fmt::format("stage {} has both {} and {} for microbatch {}; keep B, or I and W",
                                task.stage.value,
                                to_string(whole),
                                to_string(task),
                                task.microbatch.value);
        out.push_back(std::move(v));
      }
    } else if (!paired) {
      Violation v = at("V12", entry, task);
      v.missing = to_string(other);
      v.message = fmt::format(
          "{} has no {}: stage {} splits its backward of microbatch {} but lists one half; add {} "
          "or write {}",
          to_string(task),
          to_string(other),
          task.stage.value,
          task.microbatch.value,
          to_string(other),
          to_string(whole));
      out.push_back(std::move(v));
    }
  });
}

}  // namespace

void check_placement(const Input& in, Violations& out) {
  for_each_task(in, [&](const Entry& entry, const Task& task) {
    const int row = in.placement.row(task.stage).value_or(entry.row);
    if (row != entry.row) {
      Violation v = at("V07", entry, task);
      v.missing = fmt::format("row {}", row);
      v.message = fmt::format(
          "{} is on row {}, but stage {} runs on row {}; move it there, a stage has one row",
          to_string(task),
          entry.row,
          task.stage.value,
          row);
      out.push_back(std::move(v));
    }
  });
}

void check_counts(const Input& in, Violations& out) {
  check_duplicates(in, out);
  check_missing(in, out);
  check_backward_form(in, out);
}

}  // namespace stagecraft::rules
