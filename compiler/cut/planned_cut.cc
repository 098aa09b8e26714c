#include "stagecraft/compiler/cut/planned_cut.h"

namespace stagecraft {

OperatorSets planned_cut(const Costs& costs, const PlanProposal& proposal) {
  OperatorSets cut;
  const WorkGraph graph = WorkGraph::of(costs, costs.samples);
  for (const std::vector<int>& ids : ids_of(graph, proposal.candidate.stages)) {
    std::vector<std::pair<int, int>>& ranges = cut.stages.emplace_back();
    for (const int id : ids) {
      if (!ranges.empty() && ranges.back().second + 1 == id) {
        ranges.back().second = id;
      } else {
        ranges.emplace_back(id, id);
      }
    }
  }
  return cut;
}

}  // namespace stagecraft
