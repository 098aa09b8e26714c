/// kept_orders returns the orders that a step must keep in addition to its schedule because the
/// request asks for them: barriers, and the turns of transfers on half-duplex channels.
///
/// For code that judges a plan: simulate() keeps them. Pure; any thread.
#pragma once

#include <vector>

#include "stagecraft/scheduler/planners/request/planner.h"
#include "stagecraft/scheduler/simulate/event_order.h"

namespace stagecraft {

/// Returns the orders for a schedule on these stages. The turns on channels are chosen by the
/// durations in `costs`, as if every row had its own processors; if no transfers overlap, there are
/// no turns.
/// Errors: UsageArgument with the order that the schedule cannot keep.
/// Cost: nothing if the request asks for none; for shared channels as in pfeife/channels.h.
[[nodiscard]] std::vector<EventOrder> kept_orders(const PlanRequest& request,
                                                  const Schedule& schedule,
                                                  const StageGraph& stages,
                                                  const Costs& costs);

}  // namespace stagecraft
