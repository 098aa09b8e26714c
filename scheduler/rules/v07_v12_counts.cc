/// V07 to V12: every task is on its stage's row, once, and none is missing.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>

#include "stagecraft/scheduler/model/number_range.h"
#include "stagecraft/scheduler/rules/parts/rule_input.h"

namespace stagecraft::rules {
namespace {

/// The microbatches of each stage that have a forward, and those that have any backward.
struct Present {
  std::vector<std::vector<int>> forward;
  std::vector<std::vector<int>> backward;
};

/// Returns whether `task` is the one that counts as the backward of its stage and microbatch: B
/// before I before W.
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

bool is_first(const RuleInput& in, const Entry& entry, const Task& task) {
  return &in.tasks.entry(in.tasks.find(task)) == &entry;
}

Present find_present(const RuleInput& in) {
  const auto stages = static_cast<std::size_t>(in.graph.size());
  Present present{std::vector<std::vector<int>>(stages), std::vector<std::vector<int>>(stages)};
  for_each_task(in, [&](const Entry& entry, const Task& task) {
    if (task.kind == CellKind::Update || !is_first(in, entry, task)) {
      return;
    }
    if (task.kind == CellKind::Forward) {
      present.forward[task.stage.index()].push_back(task.microbatch.value);
    } else if (represents_backward(in.tasks, task)) {
      present.backward[task.stage.index()].push_back(task.microbatch.value);
    }
  });
  return present;
}

/// The microbatches that a stage lacks; stages that lack the same are reported together.
struct Lacking {
  std::vector<NumberRange> microbatches;
  bool placed = false;  ///< some row runs the stage
  friend auto operator<=>(const Lacking&, const Lacking&) = default;
};

void report_missing(const RuleInput& in,
                    const char* rule,
                    const char* what,
                    const Lacking& lacking,
                    const std::vector<int>& stages,
                    Violations& out) {
  std::set<int> rows;
  for (const int s : stages) {
    rows.insert(in.placement.row(StageId(s)).value_or(Violation::kNowhere));
  }
  const bool one = stages.size() == 1;
  const bool one_cell = one && lacking.microbatches.size() == 1 &&
                        lacking.microbatches.front().first == lacking.microbatches.front().last;
  Violation v;
  v.rule = rule;
  v.row = rows.size() == 1 ? *rows.begin() : Violation::kNowhere;
  v.stages = ranges_of(stages);
  v.microbatches = lacking.microbatches;
  v.missing = fmt::format("{} of {}", what, counted("microbatch", lacking.microbatches));
  v.message = fmt::format("{} {} the {}; add a cell for {} to {}",
                          counted("stage", v.stages),
                          one ? "lacks" : "lack",
                          v.missing,
                          one_cell ? "it" : "each",
                          !lacking.placed   ? one ? "a new row" : "new rows, one for each stage"
                          : rows.size() > 1 ? "the row of each stage"
                                            : fmt::format("row {}", v.row));
  out.push_back(std::move(v));
}

void check_missing(const RuleInput& in, Violations& out) {
  Present present = find_present(in);
  const auto check = [&](const char* rule, const char* what, auto& of_stages, auto&& wanted) {
    std::map<Lacking, std::vector<int>> lacking;
    for (StageId s; s.value < in.graph.size(); ++s.value) {
      std::vector<int>& there = of_stages[s.index()];
      if (wanted(s) && std::ssize(there) < in.tasks.microbatches(s)) {
        std::ranges::sort(there);
        lacking[{ranges_without(there, in.tasks.microbatches(s)), in.placement.row(s).has_value()}]
            .push_back(s.value);
      }
    }
    for (const auto& [what_lacks, stages] : lacking) {
      report_missing(in, rule, what, what_lacks, stages, out);
    }
  };
  check("V09", "forward", present.forward, [](StageId) { return true; });
  if (!in.options.forward_only) {
    check("V10", "backward (B, or I and W)", present.backward, [&](StageId s) {
      return in.graph.has_backward(s);
    });
  }
}

void check_duplicates(const RuleInput& in, Violations& out) {
  for_each_task(in, [&](const Entry& entry, const Task& task) {
    if (task.kind == CellKind::Update || is_first(in, entry, task)) {
      return;  // V26 reports updates, V28 members of one group
    }
    const Entry& first = in.tasks.entry(in.tasks.find(task));
    Violation v = at("V08", entry, task);
    v.cause = std::to_string(task.stage.value);
    v.missing = where(in, first);
    v.cells.emplace_back(first.row, first.column);
    v.message = fmt::format("{} is at {} and again at {}; a task runs once, so remove one",
                            to_string(task),
                            where(in, first),
                            where(in, entry));
    out.push_back(std::move(v));
  });
}

/// Checks that a whole backward stands alone and a split one has both halves.
void check_backward_form(const RuleInput& in, Violations& out) {
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
        v.cause = std::to_string(task.stage.value);
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
      v.cause = std::string(1, letter(task.kind));
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

void check_placement(const RuleInput& in, Violations& out) {
  for_each_task(in, [&](const Entry& entry, const Task& task) {
    const int row = in.placement.row(task.stage).value_or(entry.row);
    if (row != entry.row) {
      Violation v = at("V07", entry, task);
      v.cause = fmt::format("{} on {}", task.stage.value, entry.row);
      v.missing = fmt::format("row {}", row);
      v.message = fmt::format(
          "{} is on row {}, but stage {} runs on row {}; move it there, because a stage has one "
          "row",
          to_string(task),
          entry.row,
          task.stage.value,
          row);
      out.push_back(std::move(v));
    }
  });
}

void check_counts(const RuleInput& in, Violations& out) {
  check_duplicates(in, out);
  check_missing(in, out);
  check_backward_form(in, out);
}

}  // namespace stagecraft::rules
