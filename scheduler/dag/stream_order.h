/// order_streams puts the computing nodes and collectives of every rank list in one order per
/// stream.
///
/// Nodes of one stream run one after the other; nodes of different streams are ordered by edges
/// alone. All rank lists advance together, a node a turn. A list takes, of its nodes that wait for
/// no other, the one with the most successors on its ranks, direct and indirect; of equals the
/// first in topological order. So chains that may overlap are interleaved, and the collective of
/// one runs under the computing of another. What a list takes waits only for nodes that were taken
/// before, on any list: the orders of all lists together close no cycle.
/// Source: Piper, section on its scheduler.
#pragma once

#include <vector>

#include "stagecraft/scheduler/dag/dag.h"

namespace stagecraft {

/// The nodes of each stream of a rank list, in their order. Transfers are not in it.
struct StreamOrder {
  std::vector<std::vector<int>> streams;  ///< by stream
};

/// Returns the orders by rank list, and adds an order edge between neighbors of a stream. Requires:
/// no cycle.
[[nodiscard]] std::vector<StreamOrder> order_streams(TrainingDag& dag);

/// Lets each Receive wait for the computing node before its reader, so that it takes no memory
/// earlier. Requires: the orders of order_streams().
void delay_receives(TrainingDag& dag, const std::vector<StreamOrder>& orders);

}  // namespace stagecraft
