/// dispatch_order puts all nodes of a rank list in the one order in which the rank issues them.
///
/// Level by level of the longest way from a node that waits for nothing; within a level sends
/// first, then gathers and exchanges, sums, computing, receives. The next transfer of a stream may
/// be on the same level, so that a task's sends are not issued behind the next task. All ranks of a
/// list issue alike, so none of their collectives can wait for another in a circle. An early send
/// frees the peer; a late receive holds no channel before it is needed.
/// A Receive is above its Send, and the nodes of one collective, or of the vote, are on one level.
/// So ranks that do one node after the other cannot wait for each other in a circle either.
/// Source: Piper, section on its workers; the levels over all rank lists are ours.
#pragma once

#include <vector>

#include "stagecraft/scheduler/dag/dag.h"
#include "stagecraft/scheduler/dag/stream_order.h"

namespace stagecraft {

/// Returns the nodes of each rank list. Requires: order_communication().
[[nodiscard]] std::vector<std::vector<int>> dispatch_order(const TrainingDag& dag);

}  // namespace stagecraft
