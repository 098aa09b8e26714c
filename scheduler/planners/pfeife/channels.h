/// share_channels: how long a step takes when two rows have one half-duplex channel between them,
/// on which transfers never overlap, in either direction.
///
///     free     0 -> 1  ====      ====            one channel  0 -> 1  ====        ====
///              1 -> 0     ====                                1 -> 0      ====
///
/// Planners search as if channels were free; what they chose is judged with this. One thread.
/// Source: "Pfeife: Automatic Pipeline Parallelism for PyTorch", section 3.4.
/// HC-1: what one row sends another keeps the order in which it was made.
/// HC-2: of two transfers that would overlap, the one goes first with which the step is shorter; of
///       equal ones the one that is ready first. They are taken in the order of time.
#pragma once

#include <vector>

#include "stagecraft/scheduler/placement.h"
#include "stagecraft/scheduler/planners/pfeife/step_graph.h"

namespace stagecraft {

/// Adds the orders to the graph, runs it, and returns when the last row has ended.
/// Requires: transfers are vertices (StepTransfers::Vertices), and none takes kNoTransfer.
/// Cost: two runs for every two transfers that would overlap.
double share_channels(StepGraph& graph, const Placement& placement);

/// Who goes after whom on every channel, as share_channels() has left the graph: with these orders
/// no two transfers of a channel overlap, however long tasks take.
[[nodiscard]] std::vector<EventOrder> channel_orders(const StepGraph& graph,
                                                     const Placement& placement);

}  // namespace stagecraft
