#include "stagecraft/actors/profile/planning.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/scheduler/planners/propose.h"

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

/// Returns the samples of a step; if no input is split, each microbatch counts as one.
int batch_of(const Program& program) {
  const std::vector<BatchSlice>& inputs = program.compiled().inputs;
  const auto split = std::ranges::find(inputs, false, &BatchSlice::replicated);
  const std::int64_t samples = split == inputs.end() ? 1 : split->sizes[0];
  return program.microbatches() * static_cast<int>(samples);
}

}  // namespace

std::vector<PlanProposal> plan(const Program& program,
                               const Costs& costs,
                               int workers,
                               const PlanningOptions& options) {
  check_costs(program, costs);
  PlanRequest request{.costs = costs,
                      .devices = workers,
                      .batch = options.batch != 0 ? options.batch : batch_of(program),
                      .memory = options.memory,
                      .may_share = options.may_share};
  request.costs.device.processors = options.processors;
  return propose(request, options.planner);
}

std::vector<PlanProposal> plan(const Program& program,
                               const Costs& costs,
                               const Cluster& cluster,
                               const PlanningOptions& options) {
  return plan(program, costs, cluster.ranks(), options);
}

}  // namespace stagecraft
