/// note_uses: what operators of a captured graph read of each other, of the batch and of the
/// parameters, and which of them cannot be parted. Read off the graph; nothing runs.
///
/// A value is read of the operator that wrote it last, so that one written in place is read of who
/// did that. A view is a value of its own, of the operator that made it.
#pragma once

#include <vector>

#include "stagecraft/compiler/graph.h"
#include "stagecraft/scheduler/operator_cost.h"

namespace stagecraft {

/// Sets `reads`, `parameters`, `input` and `joined` of every operator.
/// Requires: one cost for each node, in their order.
void note_uses(const Graph& graph, std::vector<OperatorCost>& costs);

}  // namespace stagecraft
