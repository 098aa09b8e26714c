/// balance is the simple planner. It cuts the operators, in the order of the forward, into stages
/// of nearly equal time, and tries every builder that takes the request's microbatches.
///
/// The cut is balanced_cut() over forward and backward. If a schedule holds more than the devices
/// have, it is cut once more with every stage's share of the memory as a cap. The planner is the
/// yardstick for other planners, and often as good. Builders with parameters are tried with a few
/// values. Builders that keep two copies of the weights are skipped; so is pfeife, whose own
/// planner searches its family.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/planners/request/planner.h"

namespace stagecraft {

/// See PlannerInfo::refuses.
[[nodiscard]] std::optional<std::string> balance_refuses(const PlanRequest& request);

/// See PlannerInfo::search. The shortest simulated step comes first. With many candidates on many
/// devices, no more than kMaxBalanceTasks tasks are made in total: a share for every size of
/// microbatch, and candidates with few chunks before others.
/// Errors: as there; and the first builder's own error if no builder takes any microbatch size of
/// the request.
[[nodiscard]] std::vector<Candidate> balance_candidates(const PlanRequest& request);

inline constexpr double kMaxBalanceTasks = 2.6e7;

}  // namespace stagecraft
