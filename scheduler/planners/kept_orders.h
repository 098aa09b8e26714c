/// kept_orders returns the orders that a step must keep in addition to its schedule because the
/// request asks for them: barriers, and the turns of transfers on half-duplex channels.
///
/// Code that judges a plan uses it, and simulate() keeps the orders. Pure; any thread.
#pragma once

#include <vector>

#include "stagecraft/scheduler/planners/request/planner.h"
#include "stagecraft/scheduler/simulate/event_order.h"

namespace stagecraft {

/// Returns the orders for a schedule on these stages. The durations in `costs` decide the turns on
/// channels, as if every row had its own processors. If no transfers overlap, there are no turns.
/// Errors: UsageArgument with the order that the schedule cannot keep.
/// Cost: nothing if the request asks for none; for shared channels as in pfeife/channels.h.
[[nodiscard]] std::vector<EventOrder> kept_orders(const PlanRequest& request,
                                                  const Schedule& schedule,
                                                  const StageGraph& stages,
                                                  const Costs& costs);

}  // namespace stagecraft
