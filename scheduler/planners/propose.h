/// propose asks planners for plans, judges all of them with one Judge, and returns the best first.
///
///     const std::vector<PlanProposal> best_first = propose(request, "auto");
///
/// The commands `plan` and `train` and the profiler call it. Pure; any thread.
#pragma once

#include <string_view>
#include <vector>

#include "stagecraft/scheduler/planners/proposal.h"
#include "stagecraft/scheduler/planners/request/planner.h"

namespace stagecraft {

/// Returns the proposals of one planner, or of all that apply ("auto"), best first (PO-1).
/// Errors: UsageArgument for an unknown planner, for one that cannot answer the request (with the
/// reason), for orders that no plan can keep, and for costs that make no graph; PlanInfeasible if
/// no planner finds a plan that fits, with the reason of each.
[[nodiscard]] std::vector<PlanProposal> propose(const PlanRequest& request,
                                                std::string_view planner);

}  // namespace stagecraft
