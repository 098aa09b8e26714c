#include "stagecraft/scheduler/planners/costs_of_copies.h"

namespace stagecraft {

Costs costs_of_copies(const Costs& of_cut, const Layout& layout) {
  if (layout.replicas() == 1) {
    return of_cut;
  }
  Costs made = of_cut;
  made.stages.each.clear();
  made.links.edge_bytes.clear();
  MemoryModel& memory = made.stages.memory;
  memory.fixed.clear();
  memory.activations.clear();
  memory.transient.clear();
  for (int s = 0; s < layout.stages(); ++s) {
    const std::size_t model = layout.model_stage(StageId(s)).index();
    made.stages.each.push_back(of_cut.stages.each[model]);
    memory.fixed.push_back(of_cut.stages.memory.fixed[model]);
    memory.activations.push_back(of_cut.stages.memory.activations[model]);
    memory.transient.push_back(of_cut.stages.memory.transient[model]);
  }
  for (const auto& [edge, bytes] : of_cut.links.edge_bytes) {
    for (int replica = 0; replica < layout.replicas(); ++replica) {
      const int from = layout.stage(StageId(edge.first), replica).value;
      made.links.edge_bytes[{from, layout.stage(StageId(edge.second), replica).value}] = bytes;
    }
  }
  return made;
}

}  // namespace stagecraft
