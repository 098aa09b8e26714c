/// capslog minimizes the bytes of the fullest device and ignores time. It is for models that only
/// just fit, or do not fit.
///
/// memory_cut() cuts the operators, in the order of the forward, for 1F1B and for GPipe and for
/// every size of microbatch. The bytes of a stage depend on its place: 1F1B keeps min(M, P - place)
/// microbatches in flight, GPipe all M, so early stages of 1F1B get fewer operators. If branches
/// run in parallel, 1F1B keeps fewer, so the cut is on the safe side.
/// Source: CAPSlog. We replace the memory of layers in trimmed runs (M_i, M_a) by measurements of
/// every operator (operator_memory.h), which need no runs and take places into account.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/planners/request/planner.h"

namespace stagecraft {

/// Implements PlannerInfo::refuses.
[[nodiscard]] std::optional<std::string> capslog_refuses(const PlanRequest& request);

/// Implements PlannerInfo::search. The candidate with the smallest peak comes first.
[[nodiscard]] std::vector<Candidate> capslog_candidates(const PlanRequest& request);

}  // namespace stagecraft
