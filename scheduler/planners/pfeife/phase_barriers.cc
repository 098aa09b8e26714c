#include "stagecraft/scheduler/planners/pfeife/phase_barriers.h"

#include "stagecraft/scheduler/model/microbatch_range.h"
#include "stagecraft/scheduler/model/placement.h"

namespace stagecraft {

std::vector<EventOrder> phase_barriers(const Schedule& schedule, const StageGraph& stages) {
  const Placement placement = Placement::of(schedule, stages.size());
  std::vector<EventOrder> orders;
  for (const auto& [from, to] : stages.edges()) {
    const StageId sender(from);
    const StageId receiver(to);
    if (placement.row(sender) == placement.row(receiver)) {
      continue;
    }
    const auto users_of = [&](int m) {
      return overlapping(
          Microbatch(m), stages.microbatch_size(sender), stages.microbatch_size(receiver));
    };
    const int microbatches = stages.microbatches_of(sender, schedule.microbatches());
    for (int m = 0; m + 1 < microbatches; ++m) {
      const Task sent{CellKind::Forward, sender, Microbatch(m)};
      const Task next{CellKind::Forward, sender, Microbatch(m + 1)};
      orders.push_back({{sent, receiver}, {next}});
      for (int user = users_of(m).begin; user < users_of(m + 1).begin; ++user) {
        orders.push_back({{{CellKind::Forward, receiver, Microbatch(user)}}, {next, receiver}});
      }
    }
  }
  return orders;
}

}  // namespace stagecraft
