/// V27: a stage takes its microbatches in order, if the options require it.
#include <fmt/format.h>

#include "stagecraft/scheduler/rules/parts/rule_input.h"

namespace stagecraft::rules {

void check_microbatch_order(const RuleInput& in, Violations& out) {
  if (!in.options.microbatch_order) {
    return;
  }
  for_each_task(in, [&](const Entry& entry, const Task& task) {
    const bool weight = task.kind == CellKind::BackwardWeight;  // no task waits for it
    if (weight || task.kind == CellKind::Update || task.microbatch.value == 0) {
      return;
    }
    Task before{task.kind, task.stage, Microbatch(task.microbatch.value - 1)};
    int holder = in.tasks.find(before);
    if (holder == TaskGraph::kMissing && task.kind != CellKind::Forward) {
      const bool split = task.kind == CellKind::BackwardInput;  // the other one may be whole
      before.kind = split ? CellKind::Backward : CellKind::BackwardInput;
      holder = in.tasks.find(before);
    }
    if (holder == TaskGraph::kMissing) {
      return;  // V09 or V10 reports it
    }
    const Entry& there = in.tasks.entry(holder);
    if (there.row == entry.row && there.column >= entry.column) {
      Violation v = at("V27", entry, task);
      v.cause = fmt::format("{}{}", task.stage.value, letter(task.kind));
      v.missing = to_string(before);
      v.cells.emplace_back(there.row, there.column);
      v.message = fmt::format(
          "stage {} runs {} ({}) before {} ({}); this plan takes microbatches {} and {} in order, "
          "so exchange them",
          task.stage.value,
          to_string(task),
          where(in, entry),
          to_string(before),
          where(in, there),
          before.microbatch.value,
          task.microbatch.value);
      out.push_back(std::move(v));
    }
  });
}

}  // namespace stagecraft::rules
