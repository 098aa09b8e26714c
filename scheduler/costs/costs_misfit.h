/// costs_misfit checks whether costs contain all that a prediction of a schedule's run needs.
///
/// For values that costs leave out, the simulator takes defaults: one second or no time. That is
/// right for costs that a user states. A prediction from measured costs must report such defaults.
/// Pure; any thread may call it.
#pragma once

#include <optional>
#include <string>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// Returns whether the costs give the duration of any stage's tasks, or of overlap groups.
[[nodiscard]] bool knows_stage_times(const Costs& costs);

/// Returns a sentence about "it", the file of the costs. The sentence names the stages, rows or
/// links that the file lacks for the schedule, or has in excess. Costs with usual times of stages
/// or links cover all stages or links. Costs that name no link say that no link takes time. Returns
/// nothing if the costs fit.
[[nodiscard]] std::optional<std::string> costs_misfit(const Costs& costs,
                                                      const Schedule& schedule,
                                                      const StageGraph& graph);

/// Does the same for the times of so many stages alone.
[[nodiscard]] std::optional<std::string> stages_misfit(const Costs& costs, int stages);

}  // namespace stagecraft
