/// balance: the simple planner. Operators in the order of the forward are cut into stages of nearly
/// the same time, and every builder that takes the request's microbatches is tried on them.
///
/// The cut is balanced_cut() over forward and backward; where a schedule holds more than the
/// devices have, it is cut once more with every stage's share of the memory as a cap. Measure for
/// the other planners, and often enough as good. Builders with parameters are tried with a few; a
/// builder that keeps two copies of the weights is passed over, and so is pfeife, whose own planner
/// searches its family.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/planners/planner.h"

namespace stagecraft {

/// As PlannerInfo::refuses.
[[nodiscard]] std::optional<std::string> balance_refuses(const PlanRequest& request);

/// As PlannerInfo::search: the shortest simulated step first. Of many candidates on many devices
/// no more than kMaxBalanceTasks tasks' worth are made, a share for every size of microbatch, and
/// those of few chunks before others.
/// Errors: as there, and where no builder takes any microbatch size of the request, the first one's
///         own.
[[nodiscard]] std::vector<Candidate> balance_candidates(const PlanRequest& request);

inline constexpr double kMaxBalanceTasks = 2.6e7;

}  // namespace stagecraft
