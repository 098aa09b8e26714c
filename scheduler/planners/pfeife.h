/// The planner `pfeife`: cut and schedule together, within the family of schedules that has loops,
/// blocks and extra forwards (builders/pfeife.h).
///
///     for every size of a microbatch, for every set of parameters:
///       the best cut for its schedule, by the critical path of the step (cut_search.h)
///
/// Operators stay in the order of the forward, a stage is a run of them, stage s is on device
/// s mod D. Pure; any thread.
/// Source: "Pfeife: Automatic Pipeline Parallelism for PyTorch", section 3. Backward times are the
/// operators' own, and the search goes on where the paper's beam ends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/planners/planner.h"

namespace stagecraft {

/// Why the planner cannot answer the request; nothing where it can.
[[nodiscard]] std::optional<std::string> pfeife_refuses(const PlanRequest& request);

/// The best candidate of every set of parameters and every size, the shortest step first. Where the
/// request gives a schedule: those of best_cut_for_schedule().
/// Requires: pfeife_refuses() has nothing against it.
/// Errors: PlanInfeasible where nothing fits the memory, with the tightest device and the bytes it
///         lacks; those of WorkGraph::of() and of best_cut_for_schedule().
[[nodiscard]] std::vector<Candidate> pfeife_candidates(const PlanRequest& request);

}  // namespace stagecraft
