/// share_channels computes the time of a step if every two rows share one half-duplex channel.
/// Transfers on a channel never overlap, in either direction.
///
///     free     0 -> 1  ====      ====            one channel  0 -> 1  ====        ====
///              1 -> 0     ====                                1 -> 0      ====
///
/// Planners search as if channels were free; this function then judges their result. One thread.
/// Source: "Pfeife: Automatic Pipeline Parallelism for PyTorch", section 3.4.
/// HC-1: transfers from one row to another keep the order in which their values were made.
/// HC-2: of two transfers that would overlap, the one that makes the step shorter goes first; if
///       equal, the one that is ready first. They are decided in the order of time.
/// HC-3: once there is no time left, the transfer that is ready first goes first, all at once.
#pragma once

#include <functional>
#include <vector>

#include "stagecraft/scheduler/model/placement.h"
#include "stagecraft/scheduler/planners/pfeife/step_graph.h"

namespace stagecraft {

/// Adds the orders to the graph, runs it, and returns the time at which the last row has ended.
/// Requires: transfers are vertices (StepTransfers::Vertices), and none takes kNoTransfer.
/// `is_over`: returns whether the search has taken long enough; may be empty.
/// Cost: two runs for every two transfers that would overlap.
double share_channels(StepGraph& graph,
                      const Placement& placement,
                      const std::function<bool()>& is_over = {});

/// Returns the order of transfers on every channel, after share_channels() has run on the graph.
/// With these orders no two transfers of a channel overlap, for any duration of tasks.
[[nodiscard]] std::vector<EventOrder> channel_orders(const StepGraph& graph,
                                                     const Placement& placement);

}  // namespace stagecraft
