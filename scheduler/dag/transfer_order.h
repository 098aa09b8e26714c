/// order_transfers makes the transfers between two rank lists happen in one order at both ends, for
/// transports that pair a send with a receive by their order.
/// Source: Piper, section on its scheduler.
#pragma once

#include <vector>

#include "stagecraft/scheduler/dag/dag.h"

namespace stagecraft {

/// Adds order edges between the sends from one rank list to another, and between their receives,
/// in the order in which the sender makes them.
/// Returns the nodes of a cycle if the receiver needs another order; the graph then keeps the new
/// edges and cannot run. Empty if all is well.
[[nodiscard]] std::vector<int> order_transfers(TrainingDag& dag);

}  // namespace stagecraft
