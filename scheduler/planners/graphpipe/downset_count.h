/// takes_downsets: whether a graph has few enough downsets that all of them can be looked at
/// (downset_search.h). A downset is a set of operators with all that they read. Pure; any thread.
#pragma once

#include "stagecraft/scheduler/planners/graphpipe/partition.h"

namespace stagecraft::graphpipe {

inline constexpr int kMostDownsets = 100'000;

/// Whether the search takes the problem: one kind of turns, and no more downsets and operators.
[[nodiscard]] bool takes_downsets(const PartitionProblem& problem);

}  // namespace stagecraft::graphpipe
