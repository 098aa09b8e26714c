/// PartitionProblem holds the numbers of a request to cut a graph into stages.
///
/// planners/graphpipe/graphpipe.h makes it from costs, or a caller by hand; partition_graph()
/// (search.h) solves it. Values. Units: any single unit of time; bytes.
/// Source: GraphPipe (Jeon et al.), section 3.
#pragma once

#include <limits>
#include <vector>

#include "stagecraft/scheduler/costs/in_flight.h"
#include "stagecraft/scheduler/planners/graphpipe/problem/edges.h"

namespace stagecraft::graphpipe {

/// Variant is a way to run a stage: on this many devices, which share each of its microbatches.
struct Variant {
  StagePace turns;
  int devices = 1;
  std::vector<double> time;  ///< by operator: seconds per sample of forward, backward and reduction
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

/// Returns by operator the least time times devices over all variants.
[[nodiscard]] std::vector<double> least_work(const PartitionProblem& problem);

}  // namespace stagecraft::graphpipe
