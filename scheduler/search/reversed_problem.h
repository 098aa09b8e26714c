/// reversed_problem: the same decisions with time running backwards.
///
/// What took memory releases it, who fed is fed, and the last microbatch is the first. Any schedule
/// read from its end is one of the reversed problem, as long and with as much in flight. So heads
/// of it are tails of the problem. Pure.
#pragma once

#include <vector>

#include "stagecraft/scheduler/search/search_problem.h"

namespace stagecraft {

/// Returns what heads are found from: lanes, their times, feeds and kin; neither kinds nor bounds.
[[nodiscard]] SearchProblem reversed_problem(const SearchProblem& problem);

/// Times by lane and microbatch of the reversed problem as those of the problem itself.
[[nodiscard]] std::vector<std::vector<Ticks>> reversed_times(
    const std::vector<std::vector<Ticks>>& times);

}  // namespace stagecraft
