/// reversed_problem returns the same problem with time running backwards.
///
/// A lane that takes memory releases it, a lane that feeds is fed, and the last microbatch is the
/// first. A schedule read from its end is a schedule of the reversed problem, with equal length and
/// equal tasks in flight. So heads of the reversed problem are tails of the problem. Pure.
#pragma once

#include <vector>

#include "stagecraft/scheduler/search/search_problem.h"

namespace stagecraft {

/// Returns the data that heads are computed from: lanes, their times, feeds and paths; neither
/// kinds nor bounds.
[[nodiscard]] SearchProblem reversed_problem(const SearchProblem& problem);

/// Converts times by lane and microbatch of the reversed problem to those of the problem itself.
[[nodiscard]] std::vector<std::vector<Ticks>> reversed_times(
    const std::vector<std::vector<Ticks>>& times);

}  // namespace stagecraft
