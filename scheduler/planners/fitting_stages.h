/// fitting_stages moves operators between the stages of a plan, so that slow devices get less work
/// and small devices fewer bytes.
///
///     speeds     1      1/2    1
///     operators  0 1 2  3 4 5  6 7 8
///     moved      0 1 2 3  4 5  6 7 8 -> ... until no move makes the judged step shorter
///
/// Planners search for devices that are all alike; this adapts their plans to the actual devices.
/// Pure; any thread.
/// FS-1: no move makes the step of a plan that fits longer, beyond rounding, or the rows of a plan
///       that does not fit lack more bytes together.
#pragma once

#include "stagecraft/scheduler/planners/judge.h"
#include "stagecraft/scheduler/planners/proposal.h"
#include "stagecraft/scheduler/planners/request/planner.h"

namespace stagecraft {

/// Returns the proposal after the moves. The schedule stays. Pinned operators stay in their stages.
/// Cost: at most kMostMoves judged candidates, and fewer for large models.
[[nodiscard]] PlanProposal with_fitting_stages(Judge& judge,
                                               const PlanRequest& request,
                                               PlanProposal proposal);

inline constexpr int kMostMoves = 2000;

}  // namespace stagecraft
