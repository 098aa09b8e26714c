/// heads: before when no task of a search can start, and what must pass after its end.
///
/// From paths of tasks that wait for each other, from what devices must do before a task
/// (one_machine.h) and from what they must release (cap_rules.h). Pure.
#pragma once

#include <vector>

#include "stagecraft/scheduler/search/search_problem.h"

namespace stagecraft {

/// By lane and microbatch. Requires: lanes with their kin.
[[nodiscard]] std::vector<std::vector<Ticks>> heads_of(const SearchProblem& problem);

/// Fills heads, tails and bound.
void add_bounds(SearchProblem& problem);

}  // namespace stagecraft
