/// contract: operators that are too cheap to matter to a cut, made one with a neighbour.
///
/// For graphs that are larger than a search wants them, and for those that are series-parallel but
/// for cheap operators. Pure; any thread.
/// GC-1: two become one only where one of them has no other consumer, or the other no other
///       producer, so no cycle arises.
#pragma once

#include <span>
#include <vector>

#include "stagecraft/scheduler/planners/graphpipe/edges.h"

namespace stagecraft::graphpipe {

struct Contraction {
  std::vector<std::vector<int>> members;  ///< by what they have become, ascending
  Edges edges;                            ///< between these, each once
};

/// Makes one of neighbours as long as one of them takes less than `limit` of all time, 0 to 1.
/// Requires: edges from smaller to larger operators. Ensures: the same of what results.
[[nodiscard]] Contraction contract(int operators,
                                   const Edges& edges,
                                   std::span<const double> times,
                                   double limit);

}  // namespace stagecraft::graphpipe
