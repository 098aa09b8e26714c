/// Partition is the answer to a PartitionProblem: the stages into which a graph is cut.
///
/// partition_graph() (search.h) makes it. Values. Units: those of the problem.
/// GW-1: the stages of a partition hold every operator once, their graph is acyclic, and they are
///       in an order of it.
/// GW-2: no stage has more in flight than its variant and its consumers require, by the edges of
///       the graph, for any assumption of a search.
#pragma once

#include <vector>

#include "stagecraft/scheduler/planners/graphpipe/problem/edges.h"
#include "stagecraft/scheduler/planners/graphpipe/problem/partition_problem.h"

namespace stagecraft::graphpipe {

struct PartitionStage {
  std::vector<int> operators;  ///< ascending
  int variant = 0;
  int in_flight = 0;  ///< samples

  friend bool operator==(const PartitionStage&, const PartitionStage&) = default;
};

struct Partition {
  std::vector<PartitionStage> stages;
  double time = 0;    ///< per sample, of the slowest stage
  int devices = 0;    ///< total of all stages
  int in_flight = 0;  ///< of the stage with the most
  double peak = 0;    ///< bytes of the fullest device
};

/// Returns the stages in order, with the figures that follow from the graph. Keeps GW-1, GW-2.
/// Requires: every operator in one stage, and an acyclic graph of stages.
[[nodiscard]] Partition settle(const PartitionProblem& problem, std::vector<PartitionStage> stages);

/// Returns whether `a` is the better answer: faster; if equal, with less in flight; if equal, with
/// less memory.
[[nodiscard]] bool better(const Partition& a, const Partition& b);

/// Returns the edges between stages, by place; each once.
[[nodiscard]] Edges stage_edges(const PartitionProblem& problem,
                                const std::vector<PartitionStage>& stages);

}  // namespace stagecraft::graphpipe
