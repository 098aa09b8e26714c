/// counterparts: which operator is which in two captures of one model.
///
/// A model that is captured anew, for another shape or in evaluation mode, runs mostly the same
/// operators in the same order: dropout may be missing, a copy or a metric may be new. The longest
/// row that both have in common is found as diff finds it (Myers, "An O(ND) difference algorithm
/// and its variations", 1986).
#pragma once

#include <vector>

#include "stagecraft/compiler/graph.h"

namespace stagecraft {

inline constexpr int kNoCounterpart = -1;

/// Returns for every operator of `graph` the number of its counterpart in `model`: of the same
/// name, on the same parameters and buffers. Graphs that differ too much have none.
/// Cost: operators times differences.
[[nodiscard]] std::vector<int> counterparts(const Graph& graph, const Graph& model);

}  // namespace stagecraft
