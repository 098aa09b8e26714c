/// pfeife is the planner that chooses cut and schedule together, within a family of schedules with
/// loops, blocks and extra forwards (builders/pfeife.h).
///
///     for every size of a microbatch, for every set of parameters:
///       the best cut for its schedule, by the critical path of the step (cut_search.h)
///
/// Operators stay in the order of the forward, a stage is a run of them, and stage s is on device s
/// mod D. Pure; any thread.
/// Source: "Pfeife: Automatic Pipeline Parallelism for PyTorch", section 3. Backward times are the
/// operators' own, and the search continues where the paper's beam ends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/planners/request/planner.h"

namespace stagecraft {

/// Returns the reason why the planner cannot answer the request; nothing if it can.
[[nodiscard]] std::optional<std::string> pfeife_refuses(const PlanRequest& request);

/// Returns the best candidate of every set of parameters and every size, the shortest step first.
/// If the request gives a schedule, returns the result of best_cut_for_schedule().
/// Requires: pfeife_refuses() returns nothing.
/// Errors: PlanInfeasible if nothing fits the memory, with the tightest device and the bytes that
/// it lacks; those of WorkGraph::of() and of best_cut_for_schedule().
[[nodiscard]] std::vector<Candidate> pfeife_candidates(const PlanRequest& request);

}  // namespace stagecraft
