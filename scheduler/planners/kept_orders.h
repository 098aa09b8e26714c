/// kept_orders: what a step has to keep besides its schedule, because a request asks for it:
/// barriers, and the turns of transfers on half-duplex channels.
///
/// For those who judge a plan: simulate() keeps them. Pure; any thread.
#pragma once

#include <vector>

#include "stagecraft/scheduler/event_order.h"
#include "stagecraft/scheduler/planners/planner.h"

namespace stagecraft {

/// Of a schedule on these stages. The turns on channels are chosen by the durations in `costs`, as
/// if every row had its processors to itself; without an overlap nobody has a turn.
/// Errors: UsageArgument naming the order that the schedule cannot keep.
/// Cost: nothing where the request asks for none; shared channels as in pfeife/channels.h.
[[nodiscard]] std::vector<EventOrder> kept_orders(const PlanRequest& request,
                                                  const Schedule& schedule,
                                                  const StageGraph& stages,
                                                  const Costs& costs);

}  // namespace stagecraft
