/// dispatch_order puts all nodes of a rank list in the one order in which the rank issues them.
///
/// The level of a node is the length of the longest path to it. Nodes are issued level by level.
/// Within a level sends come first, then gathers and exchanges, sums, computation and receives. The
/// next transfer of a stream may be on the same level, so that a task's sends are not issued after
/// the next task; a send behind a receive is not, so a stream keeps its order. All ranks of a list
/// issue alike, so none of their collectives can wait for another in a circle. An early send frees
/// the peer; a late receive holds no channel before it is needed.
/// A Receive is on a later level than its Send. The nodes of one collective, or of the vote, are on
/// one level. So ranks that do one node after the other cannot wait for each other in a circle
/// either.
/// Source: Piper, section on its workers; the levels over all rank lists are ours.
#pragma once

#include <vector>

#include "stagecraft/scheduler/dag/dag.h"
#include "stagecraft/scheduler/dag/issue/stream_order.h"

namespace stagecraft {

/// Returns the nodes of each rank list. Requires: order_communication().
[[nodiscard]] std::vector<std::vector<int>> dispatch_order(const TrainingDag& dag);

}  // namespace stagecraft
