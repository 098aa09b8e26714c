/// counterparts finds for each operator of one capture the same operator in another capture of the
/// model.
///
/// A model that is captured again, for another shape or in evaluation mode, runs mostly the same
/// operators in the same order: dropout may be missing, a copy or a metric may be new. The longest
/// common sequence is found by the algorithm of diff (Myers, "An O(ND) difference algorithm and its
/// variations", 1986).
#pragma once

#include <vector>

#include "stagecraft/compiler/graph/graph.h"

namespace stagecraft {

inline constexpr int kNoCounterpart = -1;

/// Returns for every operator of `graph` the number of its counterpart in `model`. Counterparts
/// have the same name and use the same parameters and buffers. Graphs that differ too much have no
/// counterparts.
/// Cost: number of operators times number of differences.
[[nodiscard]] std::vector<int> counterparts(const Graph& graph, const Graph& model);

}  // namespace stagecraft
