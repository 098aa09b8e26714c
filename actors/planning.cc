#include "stagecraft/actors/planning.h"

#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compiled_program.h"

namespace stagecraft {
namespace {

void check_costs(const Program& program, const Costs& costs) {
  const std::vector<Node>& nodes = program.compiled().graph.nodes;
  const bool same =
      std::ranges::equal(costs.operators, nodes, {}, &OperatorCost::name, operator_name);
  if (!same) {
    throw Error(Errc::UsageArgument,
                fmt::format("the costs are of another model: {} operators where the program has "
                            "{}; profile this one",
                            costs.operators.size(),
                            nodes.size()));
  }
}

bool runs(const PlanProposal& proposal) {
  return std::ranges::all_of(proposal.candidate.replicas, [](int n) { return n == 1; });
}

}  // namespace

std::vector<PlanProposal> plan(const Program& program,
                               const Costs& costs,
                               int workers,
                               const PlanningOptions& options) {
  check_costs(program, costs);
  PlanRequest request{
      .costs = costs, .devices = workers, .batch = options.batch, .memory = options.memory};
  request.costs.device.processors = options.processors;
  std::vector<PlanProposal> found = propose(request, options.planner);
  std::erase_if(found, [](const PlanProposal& one) { return !runs(one); });
  if (found.empty()) {
    throw Error(Errc::PlanInfeasible,
                fmt::format("planner {} proposes only stages with replicas, which a trainer does "
                            "not run; ask another planner",
                            options.planner));
  }
  return found;
}

std::vector<PlanProposal> plan(const Program& program,
                               const Costs& costs,
                               const Cluster& cluster,
                               const PlanningOptions& options) {
  return plan(program, costs, cluster.ranks(), options);
}

}  // namespace stagecraft
