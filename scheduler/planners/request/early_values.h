/// early_values computes bytes that rows hold in addition to the memory model: values that arrive
/// before the task that takes them begins.
///
///     row 0   0F0 0F1 0F2 ...
///     row 1       1F0----- 1F1-----     the results of 0F1 and 0F2 wait at row 1
///
/// Pure; any thread.
#pragma once

#include <vector>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft {

/// Returns by row the most bytes held at once, waiting values included. A value takes memory at the
/// receiver from the time it is sent.
/// Requires: the timeline is of this schedule, graph and costs.
[[nodiscard]] std::vector<double> peaks_with_early_values(const Timeline& timeline,
                                                          const Schedule& schedule,
                                                          const StageGraph& graph,
                                                          const LinkCosts& links);

}  // namespace stagecraft
