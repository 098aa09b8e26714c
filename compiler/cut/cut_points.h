/// cut_points: between which operators a graph may be cut.
///
/// Stages share no memory: an operator that writes in place stays together with all that touched
/// that memory before it, and where the memory is not the graph's own (an input, a parameter, a
/// buffer) with all that ever touch it.
#pragma once

#include <cstddef>
#include <vector>

#include "stagecraft/compiler/graph.h"

namespace stagecraft {

/// Returns the operators before which the graph may be cut, ascending; the first operator is one.
[[nodiscard]] std::vector<std::size_t> cut_points(const Graph& graph);

}  // namespace stagecraft
