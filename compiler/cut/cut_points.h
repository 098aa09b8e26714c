/// cut_points finds the operators between which a graph may be cut.
///
/// Stages share no memory. An operator that writes in place therefore stays with all operators that
/// used that memory before it. If the memory is not the graph's own (an input, a parameter, a
/// buffer), it stays with all operators that ever use it.
#pragma once

#include <cstddef>
#include <vector>

#include "stagecraft/compiler/graph/graph.h"

namespace stagecraft {

/// Returns the operators before which the graph may be cut, ascending. The first operator is always
/// one of them.
[[nodiscard]] std::vector<std::size_t> cut_points(const Graph& graph);

}  // namespace stagecraft
