/// note_uses finds the values that operators of a captured graph read from each other, from the
/// batch and from the parameters, and the operators that cannot be separated. It reads this off the
/// graph; nothing runs.
///
/// A value counts as read from the operator that wrote it last, so a value written in place is read
/// from its writer. A view is a value of its own, made by the operator that returned it.
#pragma once

#include <vector>

#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/scheduler/costs/operator_cost.h"

namespace stagecraft {

/// Sets `reads`, `parameters`, `input` and `joined` of every operator's cost.
/// Requires: one cost for each node, in their order.
void note_uses(const Graph& graph, std::vector<OperatorCost>& costs);

}  // namespace stagecraft
