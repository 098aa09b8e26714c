/// least_memory finds stages for 1F1B whose fullest device holds few bytes, also on graphs with
/// branches.
///
///     tower 1: 0 - 1
///                   > 4      in a row, 0 1 | 2 3 | 4, the first stage keeps three microbatches;
///     tower 2: 2 - 3         as a graph, with 0 1 beside 2 3, it keeps two
///
/// The search starts at cuts of the row of operators and moves operators between stages as long as
/// devices then hold less, the fullest devices first. capslog cuts only the row, where it is exact.
/// propose() uses least_memory if nothing else fits. Pure; any thread.
#pragma once

#include <vector>

#include "stagecraft/scheduler/planners/request/planner.h"

namespace stagecraft {

/// Returns one candidate for every size of a microbatch; it may exceed the memory.
/// Requires: a limited memory, an operator for every device.
/// Cost: for every size, at most 20,000 looks at all operators, and at most kMostLeastMemoryLooks
/// operators in total.
[[nodiscard]] std::vector<Candidate> least_memory_candidates(const PlanRequest& request);

inline constexpr int kMostLeastMemoryLooks = 4'000'000;

}  // namespace stagecraft
