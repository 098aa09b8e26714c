#include "stagecraft/scheduler/builders/one_f_one_b.h"

#include <algorithm>

#include "stagecraft/base/check.h"
#include "stagecraft/scheduler/builders/kfkb.h"
#include "stagecraft/scheduler/builders/parts/alternating_row.h"
#include "stagecraft/scheduler/builders/parts/row_list.h"

namespace stagecraft {
namespace {

Schedule::Row stage_row(const StageGraph& stages, int s, int in_flight, int microbatches) {
  if (stages.has_backward(StageId(s))) {
    return alternating_row({.total = microbatches,
                            .warm_up = in_flight - 1,
                            .forward = turns_of(s),
                            .backward = turns_of(s)});
  }
  RowList list;
  for (int m = 0; m < microbatches; ++m) {
    list.forward(s, m);
  }
  return list.take();
}

}  // namespace

std::vector<int> in_flight_counts(const StageGraph& stages) {
  const auto order = stages.topological_order();
  SC_CHECK(order.has_value(), "in_flight_counts() of a stage graph with a cycle");
  std::vector<int> count(static_cast<std::size_t>(stages.size()), 1);
  for (auto s = order->rbegin(); s != order->rend(); ++s) {
    for (const StageId c : stages.succs(*s)) {
      count[s->index()] = std::max(count[s->index()], count[c.index()] + 1);
    }
  }
  return count;
}

Schedule one_f_one_b(const StageGraph& stages, int microbatches) {
  require_positive("1f1b", "stages", stages.size());
  require_positive("1f1b", "microbatches", microbatches);
  require_acyclic("dag-1f1b", stages);
  if (!stages.microbatch_sizes().empty()) {
    return kfkb(stages, microbatches, {1});
  }
  const std::vector<int> in_flight = in_flight_counts(stages);
  std::vector<Schedule::Row> rows;
  for (int s = 0; s < stages.size(); ++s) {
    rows.push_back(stage_row(stages, s, in_flight[static_cast<std::size_t>(s)], microbatches));
  }
  return finish(std::move(rows), stages, microbatches);
}

Schedule one_f_one_b(int stages, int microbatches) {
  require_positive("1f1b", "devices", stages);
  return one_f_one_b(StageGraph::chain(stages), microbatches);
}

}  // namespace stagecraft
