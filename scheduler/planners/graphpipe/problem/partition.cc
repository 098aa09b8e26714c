#include "stagecraft/scheduler/planners/graphpipe/problem/partition.h"

#include <algorithm>
#include <tuple>

#include "stagecraft/base/check.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/planners/graphpipe/problem/stage_load.h"

namespace stagecraft::graphpipe {
namespace {

StageGraph graph_of(const PartitionProblem& problem, const std::vector<PartitionStage>& stages) {
  return StageGraph::from_edges(static_cast<int>(stages.size()), stage_edges(problem, stages));
}

/// Orders stages: producers first, otherwise by the first operator.
std::vector<PartitionStage> in_order(const PartitionProblem& problem,
                                     std::vector<PartitionStage> stages) {
  for (PartitionStage& stage : stages) {
    std::ranges::sort(stage.operators);
  }
  std::ranges::sort(stages, {}, [](const PartitionStage& s) { return s.operators.front(); });
  const auto order = graph_of(problem, stages).topological_order();
  SC_CHECK(order.has_value(), "the stages of a partition wait for each other");
  std::vector<PartitionStage> sorted;
  for (const StageId stage : *order) {
    sorted.push_back(std::move(stages[stage.index()]));
  }
  return sorted;
}

}  // namespace

Edges stage_edges(const PartitionProblem& problem, const std::vector<PartitionStage>& stages) {
  std::vector<int> stage_of(at(problem.operators), -1);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (const int op : stages[s].operators) {
      stage_of[at(op)] = static_cast<int>(s);
    }
  }
  return edges_between(problem.edges, stage_of);
}

Partition settle(const PartitionProblem& problem, std::vector<PartitionStage> stages) {
  Partition made{.stages = in_order(problem, std::move(stages))};
  std::vector<StagePace> paces;
  for (const PartitionStage& stage : made.stages) {
    paces.push_back(problem.variants[at(stage.variant)].turns);
  }
  const std::vector<int> in_flight = samples_in_flight(graph_of(problem, made.stages), paces);
  for (std::size_t s = 0; s < made.stages.size(); ++s) {
    made.stages[s].in_flight = in_flight[s];
  }
  const Neighbors graph = neighbors_of(problem.operators, problem.edges);
  for (const PartitionStage& stage : made.stages) {
    StageLoad load(problem, graph);
    std::for_each(stage.operators.rbegin(), stage.operators.rend(), [&](int op) { load.add(op); });
    made.time = std::max(made.time, load.time(stage.variant));
    made.peak = std::max(made.peak, load.bytes(stage.variant, stage.in_flight));
    made.devices += problem.variants[at(stage.variant)].devices;
    made.in_flight = std::max(made.in_flight, stage.in_flight);
  }
  return made;
}

bool better(const Partition& a, const Partition& b) {
  return std::tie(a.time, a.in_flight, a.peak) < std::tie(b.time, b.in_flight, b.peak);
}

}  // namespace stagecraft::graphpipe
