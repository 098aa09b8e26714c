#include "stagecraft/scheduler/planners/pfeife/phase_barriers.h"

#include "stagecraft/scheduler/placement.h"

namespace stagecraft {

std::vector<StepOrder> phase_barriers(const Schedule& schedule, const StageGraph& stages) {
  const Placement placement = Placement::of(schedule, stages.size());
  const int microbatches = stages.microbatches_per_replica(schedule.microbatches());
  std::vector<StepOrder> orders;
  for (const auto& [from, to] : stages.edges()) {
    const StageId sender(from);
    const StageId receiver(to);
    if (placement.row(sender) == placement.row(receiver)) {
      continue;
    }
    for (int m = 0; m + 1 < microbatches; ++m) {
      const Task sent{CellKind::Forward, sender, Microbatch(m)};
      const Task next{CellKind::Forward, sender, Microbatch(m + 1)};
      const Task used{CellKind::Forward, receiver, Microbatch(m)};
      orders.push_back({{sent, receiver}, {next}});
      orders.push_back({{used}, {next, receiver}});
    }
  }
  return orders;
}

}  // namespace stagecraft
