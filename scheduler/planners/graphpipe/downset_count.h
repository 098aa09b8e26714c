/// takes_downsets decides whether a graph has few enough downsets to look at all of them
/// (downset_search.h). A downset is a set of operators that contains everything its operators read.
/// Pure; any thread.
#pragma once

#include "stagecraft/scheduler/planners/graphpipe/problem/partition_problem.h"

namespace stagecraft::graphpipe {

inline constexpr int kMostDownsets = 100'000;

/// Returns whether the search takes the problem: one kind of turns, and no more downsets and
/// operators than the limits.
[[nodiscard]] bool takes_downsets(const PartitionProblem& problem);

}  // namespace stagecraft::graphpipe
