/// costs_misfit: whether costs say what it takes to predict a run of a schedule.
///
/// The simulator takes what costs leave out from their defaults, a second or no time. That is right
/// for costs that somebody states; a prediction with measured ones must not be made of it unawares.
/// Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "stagecraft/scheduler/costs.h"
#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

/// Whether they say how long any stage's tasks take, or overlap groups.
[[nodiscard]] bool knows_stage_times(const Costs& costs);

/// Says what "it", the file of the costs, lacks for the schedule, or has beyond it: stages, rows,
/// links that it sends over. Costs with usual times of stages or links know all stages or links;
/// costs that name no link know that none takes time. Nothing where they fit.
[[nodiscard]] std::optional<std::string> costs_misfit(const Costs& costs,
                                                      const Schedule& schedule,
                                                      const StageGraph& graph);

}  // namespace stagecraft
