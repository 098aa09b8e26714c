/// balance is the simple planner. It cuts the operators, in the order of the forward, into stages
/// of nearly equal time, and tries every builder that takes the request's microbatches.
///
/// The cut is balanced_cut() over forward and backward. If a schedule holds more than the devices
/// have, the operators are cut once more, with every stage's share of the memory as a cap. Other
/// planners are measured against this one, and it is often as good. The planner tries builders with
/// parameters with a few values. It skips builders that keep two copies of the weights, and pfeife,
/// whose own planner searches its family.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/planners/request/planner.h"

namespace stagecraft {

/// Implements PlannerInfo::refuses.
[[nodiscard]] std::optional<std::string> balance_refuses(const PlanRequest& request);

/// Implements PlannerInfo::search. The shortest simulated step comes first. With many candidates on
/// many devices, it makes no more than kMaxBalanceTasks tasks in total: a share for every size of
/// microbatch, and candidates with few chunks before others.
/// Errors: those of PlannerInfo::search; and the first builder's own error if no builder takes any
/// microbatch size of the request.
[[nodiscard]] std::vector<Candidate> balance_candidates(const PlanRequest& request);

inline constexpr double kMaxBalanceTasks = 2.6e7;

}  // namespace stagecraft
