/// V30: no row holds more bytes than its budget, on any of its ranks.
#include <algorithm>
#include <iterator>
#include <span>

#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/scheduler/costs/memory_model.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/rules/parts/rule_input.h"

namespace stagecraft::rules {
namespace {

/// The peak bytes of one row and their place.
struct RowPeak {
  RowMemory memory;
  double bytes = 0;
  const Entry* entry = nullptr;

  void run(const Entry& at, std::span<const Task> tasks) {
    const double now = memory.run(tasks);
    if (entry == nullptr || now > bytes) {
      bytes = now;
      entry = &at;
    }
  }
};

/// Returns the graph without backwards: an evaluation keeps nothing for them.
StageGraph without_backward(StageGraph graph) {
  for (StageId s; s.value < graph.size(); ++s.value) {
    graph.set_needs_input_grad(s, false);
    graph.set_needs_weight_grad(s, false);
  }
  return graph;
}

}  // namespace

void check_memory(const RuleInput& in, Violations& out) {
  if (!in.options.memory) {
    return;
  }
  const MemoryModel& model = *in.options.memory;
  const StageGraph graph = in.options.forward_only ? without_backward(in.graph) : in.graph;
  std::vector<RowPeak> rows;
  for (const RowShare& share : row_shares(in.schedule)) {
    rows.push_back(RowPeak{RowMemory(model, graph, share.units)});
  }
  for (StageId s; s.value < in.graph.size(); ++s.value) {
    if (const auto row = in.placement.row(s)) {
      rows[static_cast<std::size_t>(*row)].memory.hold_fixed(s);
    }
  }
  std::vector<Task> tasks;
  for (const Entry& entry : in.tasks.entries()) {
    tasks.clear();
    std::ranges::copy_if(entry.cell->tasks(), std::back_inserter(tasks), [&](const Task& task) {
      return in.tasks.in_range(task);
    });
    rows[static_cast<std::size_t>(entry.row)].run(entry, tasks);
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].entry != nullptr && rows[r].bytes > model.budget_of(r)) {
      const Entry& entry = *rows[r].entry;
      Violation v = at("V30", entry, entry.cell->tasks().front());
      const double lacks = rows[r].bytes - model.budget_of(r);
      v.missing = fmt::format("{:.0f} bytes", lacks);
      v.message = fmt::format(
          "row {} holds {} at {} ({}), {} more than its budget of {}; keep fewer microbatches in "
          "flight, move a stage elsewhere or raise the budget",
          r,
          bytes_text(rows[r].bytes),
          to_string(*entry.cell),
          where(in, entry),
          enough_bytes_text(lacks),
          bytes_text(model.budget_of(r)));
      out.push_back(std::move(v));
    }
  }
}

}  // namespace stagecraft::rules
