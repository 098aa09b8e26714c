/// contract merges operators that are too cheap to affect a cut with a neighbor.
///
/// It serves graphs that are too large for a search, and graphs that are series-parallel except for
/// cheap operators. Pure; any thread.
/// GC-1: two operators are merged only if one has no other consumer, or the other no other
///       producer, so no cycle arises.
#pragma once

#include <span>
#include <vector>

#include "stagecraft/scheduler/planners/graphpipe/problem/edges.h"

namespace stagecraft::graphpipe {

struct Contraction {
  std::vector<std::vector<int>> members;  ///< by merged operator, ascending
  Edges edges;                            ///< between merged operators, each once
};

/// Merges neighbors as long as one of them takes less than `limit` (0 to 1) of the total time.
/// Requires: edges from smaller to larger operators.
/// Ensures: the same for the result.
[[nodiscard]] Contraction contract(int operators,
                                   const Edges& edges,
                                   std::span<const double> times,
                                   double limit);

}  // namespace stagecraft::graphpipe
