/// order_streams puts the computing nodes and collectives of every rank list in one order per
/// stream.
///
/// Nodes of one stream run one after the other; nodes of different streams are ordered by edges
/// alone. All rank lists advance together. Each turn each stream of a list takes one node that
/// waits for no other: the one with the most direct and indirect successors on its ranks; of
/// equals, the first in topological order. So chains that may overlap are interleaved, the
/// collective of one chain overlaps the computation of another, and sums of gradients stand in the
/// order in which their gradients are complete. A list takes only nodes whose predecessors, on any
/// list, were taken before. So the orders of all lists together close no cycle.
/// Source: Piper, section on its scheduler.
#pragma once

#include <vector>

#include "stagecraft/scheduler/dag/dag.h"

namespace stagecraft {

/// StreamOrder holds the nodes of each stream of a rank list, in their order. It contains no
/// transfers.
struct StreamOrder {
  std::vector<std::vector<int>> streams;  ///< by stream
};

/// Returns the orders by rank list, and adds an order edge between neighbors of a stream.
/// Requires: no cycle.
[[nodiscard]] std::vector<StreamOrder> order_streams(TrainingDag& dag);

/// Lets each Receive wait for the computing node before its reader, so that it takes no memory
/// earlier. Requires: the orders of order_streams().
void delay_receives(TrainingDag& dag, const std::vector<StreamOrder>& orders);

}  // namespace stagecraft
