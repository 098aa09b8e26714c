/// least_memory: stages for 1F1B of which the fullest device holds little, on graphs with branches
/// too.
///
///     tower 1: 0 - 1
///                   > 4      in a row 0 1 | 2 3 | 4 the first stage keeps three microbatches,
///     tower 2: 2 - 3         as a graph, with 0 1 beside 2 3, two
///
/// Starts at cuts of the row of operators, and moves operators between stages while what devices
/// hold gets less, fuller ones before others. What capslog cuts for is the row alone, where it is
/// exact. For a propose() that finds nothing that fits. Pure; any thread.
#pragma once

#include <vector>

#include "stagecraft/scheduler/planners/planner.h"

namespace stagecraft {

/// Returns one candidate for every size of a microbatch, whether or not it fits the memory.
/// Requires: a limited memory, an operator for every device.
/// Cost: for every size so many looks at all operators that these are kMostLeastMemoryLooks, and
///       20,000 at most.
[[nodiscard]] std::vector<Candidate> least_memory_candidates(const PlanRequest& request);

inline constexpr int kMostLeastMemoryLooks = 4'000'000;

}  // namespace stagecraft
