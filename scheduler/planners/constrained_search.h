/// constrained_search runs a planner's search within constraints that planners ignore: pinned
/// operators, a limit on stages, links that differ.
///
/// propose() uses it. Pure; any thread.
#pragma once

#include <functional>
#include <vector>

#include "stagecraft/scheduler/planners/request/planner.h"

namespace stagecraft {

/// Returns the candidates of a search. If links differ, it runs the search a second time for
/// devices in the order of neighbors_order(), and returns both answers. It leaves out candidates
/// that have too many stages, or that cannot keep the request's pins.
/// Errors: those of the search; PlanInfeasible if no candidate is left, with the reason.
[[nodiscard]] std::vector<Candidate> constrained_search(
    const std::function<std::vector<Candidate>(const PlanRequest&)>& search,
    const PlanRequest& request);

}  // namespace stagecraft
