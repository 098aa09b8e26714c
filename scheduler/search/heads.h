/// heads computes the time before which each task of a search cannot start, and the time that must
/// pass after its end.
///
/// It derives them from paths of tasks that wait for each other, from the work that devices must do
/// before a task (one_machine.h), and from their releases (cap_rules.h). Pure.
#pragma once

#include <vector>

#include "stagecraft/scheduler/search/search_problem.h"

namespace stagecraft {

/// Returns the heads by lane and microbatch. Requires: lanes with their paths.
[[nodiscard]] std::vector<std::vector<Ticks>> heads_of(const SearchProblem& problem);

/// Writes heads, tails and bound.
void add_bounds(SearchProblem& problem);

}  // namespace stagecraft
