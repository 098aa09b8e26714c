/// V20 to V23: in an array, a cell uses results of earlier columns only.
#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/scheduler/rules/parts/rule_input.h"

namespace stagecraft::rules {
namespace {

/// Returns the rule that `task` breaks if `prerequisite` is late.
const char* rule_of(const Task& task, const Task& prerequisite) {
  if (task.kind == CellKind::Forward) {
    return "V20";
  }
  if (task.kind == CellKind::BackwardWeight && prerequisite.stage == task.stage) {
    return "V23";
  }
  return prerequisite.kind == CellKind::Forward ? "V21" : "V22";
}

/// Collects the late prerequisites of one task that fall under one rule.
void add_late(const RuleInput& in,
              const Entry& entry,
              const Task& task,
              const Task& late,
              int holder,
              Violations& found) {
  const char* rule = rule_of(task, late);
  if (found.empty() || found.back().rule != rule) {
    found.push_back(at(rule, entry, task));
    found.back().cause = fmt::format("{}{}", task.stage.value, letter(task.kind));
  }
  Violation& v = found.back();
  v.missing += v.missing.empty() ? "" : ", ";
  v.missing += to_string(late);
  std::string state = "is missing";
  v.cause += fmt::format(" {}{}{}",
                         late.stage.value,
                         letter(late.kind),
                         holder == TaskGraph::kMissing ? " missing" : "");
  if (holder != TaskGraph::kMissing) {
    const Entry& there = in.tasks.entry(holder);
    state = fmt::format("is at {}", where(in, there));
    v.cells.emplace_back(there.row, there.column);
  }
  v.message += fmt::format("{}{} {}", v.message.empty() ? "" : ", ", to_string(late), state);
}

/// Returns the first column that comes after all prerequisites that are present.
int earliest_column(const Violation& v) {
  int column = 0;
  for (std::size_t i = 1; i < v.cells.size(); ++i) {
    column = std::max(column, v.cells[i].second + 1);
  }
  return column;
}

}  // namespace

void check_columns(const RuleInput& in, Violations& out) {
  if (in.schedule.form() != Schedule::Form::Array) {
    return;
  }
  Violations found;
  for_each_task(in, [&](const Entry& entry, const Task& task) {
    if (task.kind == CellKind::Update) {
      return;
    }
    in.tasks.for_each_prerequisite(task, [&](const Task& prerequisite) {
      const int holder = in.tasks.find(prerequisite);
      if (holder == TaskGraph::kMissing || in.tasks.entry(holder).column >= entry.column) {
        add_late(in, entry, task, prerequisite, holder, found);
      }
    });
    for (Violation& v : found) {
      const std::string advice =
          v.cells.size() > 1
              ? fmt::format("move {} to column {} or later", to_string(task), earliest_column(v))
              : fmt::format("add {} before column {}", v.missing, entry.column);
      v.message = fmt::format("{} at {} needs results of earlier columns, but {}; {}",
                              to_string(task),
                              where(in, entry),
                              v.message,
                              advice);
      out.push_back(std::move(v));
    }
    found.clear();
  });
}

}  // namespace stagecraft::rules
