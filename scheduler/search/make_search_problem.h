/// make_search_problem turns the stages, costs and cap of a request into the lanes of a
/// SearchProblem, with the bounds of their tasks. Pure.
#pragma once

#include <vector>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/search/search_problem.h"

namespace stagecraft {

/// Returns the problem. `row_of`: the device of each stage. `microbatches`: the number of the step.
/// `split`: backwards in halves. Durations that are not multiples of one common tick are rounded
/// down to millionths of the longest.
/// Requires: one chain or replicas of it, each stage after those that feed it; cap >= the stages of
/// a replica on a device; positive durations.
/// Errors: ScheduleParameter for a duration below a tick.
[[nodiscard]] SearchProblem make_search_problem(const StageGraph& graph,
                                                const std::vector<int>& row_of,
                                                int microbatches,
                                                bool split,
                                                int cap,
                                                const Costs& costs);

}  // namespace stagecraft
