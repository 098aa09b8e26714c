/// sharing_misfit tells whether the copies of a stage in a schedule (@replicas) can share what they
/// hold: their rows must come to the same sums and gathers in the same order. Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/strategy/sharing.h"

namespace stagecraft {

/// Returns why the copies cannot share so much; nothing if they can, or if the schedule has none.
/// Requires: validate() finds nothing in the schedule. Cost: that of the training DAG.
[[nodiscard]] std::optional<std::string> sharing_misfit(const Schedule& schedule,
                                                        const StageGraph& graph,
                                                        Sharing sharing);

}  // namespace stagecraft
