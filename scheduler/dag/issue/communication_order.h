/// order_communication puts the nodes of each communication stream in one order. No cycle results,
/// even if a send waits for its receive, and a collective for all its ranks.
///
/// All streams follow one order of the whole graph, in which a Send and its Receive have one place.
/// So the transfers between two rank lists have the same order at both ends. A transport that pairs
/// sends and receives by order needs this. It also lets one stream serve both directions.
/// Source: Piper, section on its scheduler; the order over all ranks is ours.
#pragma once

#include "stagecraft/scheduler/dag/dag.h"

namespace stagecraft {

/// Adds order edges between neighbors of every stream that has transfers.
/// Requires: order_streams() and delay_receives().
void order_communication(TrainingDag& dag);

}  // namespace stagecraft
