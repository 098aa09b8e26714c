/// dispatch_order puts all nodes of a rank list in the one order in which the rank issues them.
///
/// Level by level of the longest way from a node that waits for nothing; within a level sends
/// first, then gathers and exchanges, sums, computing, receives. All ranks of a list issue alike,
/// so none of their collectives can wait for another in a circle. An early send frees the peer; a
/// late receive holds no channel before it is needed.
/// Source: Piper, section on its workers.
#pragma once

#include <vector>

#include "stagecraft/scheduler/dag/dag.h"
#include "stagecraft/scheduler/dag/stream_order.h"

namespace stagecraft {

/// Returns the nodes of each rank list. Requires: order_streams() and delay_receives().
[[nodiscard]] std::vector<std::vector<int>> dispatch_order(const TrainingDag& dag);

}  // namespace stagecraft
