#include "stagecraft/compiler/cut/planned_cut.h"

#include "stagecraft/scheduler/model/number_range.h"

namespace stagecraft {

OperatorSets planned_cut(const Costs& costs, const PlanProposal& proposal) {
  OperatorSets cut;
  const WorkGraph graph = WorkGraph::of(costs, costs.samples);
  for (const std::vector<int>& ids : ids_of(graph, proposal.candidate.stages)) {
    std::vector<std::pair<int, int>>& stage = cut.stages.emplace_back();
    for (const auto& [first, last] : ranges_of(ids)) {
      stage.emplace_back(first, last);
    }
  }
  return cut;
}

}  // namespace stagecraft
