/// capslog: a planner that makes the fullest device hold as little as it can, and leaves time to
/// others: for models that only just fit, or do not.
///
/// Operators in the order of the forward are cut by memory_cut(), for 1F1B and for GPipe and for
/// every size of microbatch. What a stage holds is not one number: 1F1B keeps min(M, P - place)
/// microbatches in flight, GPipe all M, so early stages of 1F1B get fewer operators. Where branches
/// run side by side 1F1B keeps fewer than that, and the cut is on the safe side.
/// Source: CAPSlog; M_i and M_a of trimmed runs (layer_memory.h) are replaced by what was measured
/// of every operator (operator_memory.h), which needs no runs and knows places.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/planners/planner.h"

namespace stagecraft {

/// As PlannerInfo::refuses.
[[nodiscard]] std::optional<std::string> capslog_refuses(const PlanRequest& request);

/// As PlannerInfo::search: the one with the smallest peak first.
[[nodiscard]] std::vector<Candidate> capslog_candidates(const PlanRequest& request);

}  // namespace stagecraft
