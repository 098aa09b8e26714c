#include "stagecraft/bench/plans/judged.h"

#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft::bench {

PlanProposal judged(const PlanRequest& request, const Program& program, const Schedule& schedule) {
  const WorkGraph graph = WorkGraph::of(request.costs, request.costs.samples);
  Candidate candidate{
      .planner = "given",
      .stages = StageOperators(static_cast<std::size_t>(program.stage_graph().size())),
      .microbatch_size = request.costs.samples,
      .schedule = schedule,
      .schedule_name = "given"};
  for (int op = 0; op < graph.size(); ++op) {
    const auto node = static_cast<std::size_t>(graph.ids(op).front());
    const int stage = program.compiled().assignment.stage_of[node];
    candidate.stages[static_cast<std::size_t>(stage)].push_back(op);
  }
  return judge(request, candidate);
}

}  // namespace stagecraft::bench
