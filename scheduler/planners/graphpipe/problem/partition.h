/// PartitionProblem holds the numbers of a request to cut a graph into stages; Partition holds the
/// answer.
///
/// Made from costs by planners/graphpipe/graphpipe.h, or by hand; solved by partition_graph()
/// (search.h).
/// Values. Units: any single unit of time; bytes.
/// GW-1: the stages of a partition hold every operator once, their graph is acyclic, and they stand
///       in an order of it.
/// GW-2: no stage has more in flight than its variant and its consumers require, by the edges of
///       the graph, whatever a search assumed.
/// Source: GraphPipe (Jeon et al.), section 3.
#pragma once

#include <limits>
#include <vector>

#include "stagecraft/scheduler/costs/in_flight.h"
#include "stagecraft/scheduler/planners/graphpipe/problem/edges.h"

namespace stagecraft::graphpipe {

/// A way to run a stage: on this many devices, which share each of its microbatches.
struct Variant {
  StagePace turns;
  int devices = 1;
  std::vector<double> time;  ///< by operator: per sample; forward, backward and reduction
  std::vector<double> send;  ///< per sample, if a consumer is in another stage; empty: nothing
  std::vector<double> kept;  ///< bytes of a sample in flight, on each device; empty: nothing

  [[nodiscard]] double send_of(int op) const { return send.empty() ? 0 : send[at(op)]; }
};

struct PartitionProblem {
  int operators = 0;
  Edges edges;  ///< from smaller to larger operators
  int devices = 1;
  double memory = std::numeric_limits<double>::infinity();  ///< bytes of every device
  std::vector<double> fixed;      ///< by operator: bytes on every device of a stage; empty: none
  std::vector<Variant> variants;  ///< by turns, then devices, both ascending
};

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

/// Returns by operator the least time times devices over all variants.
[[nodiscard]] std::vector<double> least_work(const PartitionProblem& problem);

/// Returns whether `a` is the better answer: faster, else with less in flight, else with less
/// memory.
[[nodiscard]] bool better(const Partition& a, const Partition& b);

/// Returns the edges between stages, by place; each once.
[[nodiscard]] Edges stage_edges(const PartitionProblem& problem,
                                const std::vector<PartitionStage>& stages);

}  // namespace stagecraft::graphpipe
