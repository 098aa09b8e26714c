/// phase_barriers returns the orders of a step that computes and communicates in turn.
///
///     stage 0   F0  send 0      F1  send 1
///     stage 1               F0              F1
///
/// They are for devices that cannot compute and transfer at the same time. Pure; any thread.
/// Source: "Pfeife: Automatic Pipeline Parallelism for PyTorch", section 3.2.
#pragma once

#include <vector>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/simulate/event_order.h"

namespace stagecraft {

/// Returns two orders for every edge between two rows and every microbatch but the last. The
/// sender's next forward waits for the transfer. The next transfer waits for the receiver's
/// forward, unless that forward needs both transfers (SG-4).
[[nodiscard]] std::vector<EventOrder> phase_barriers(const Schedule& schedule,
                                                     const StageGraph& stages);

}  // namespace stagecraft
