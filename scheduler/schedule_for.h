/// schedule_for: the schedule of a name for a model that has been cut already: its stages say how
/// many devices there are, where registry.h makes stages of devices.
///
/// Used by trainers that are given a name. Pure; any thread.
#pragma once

#include <string_view>

#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

/// Returns what builder `name` makes for these stages, over their own graph where it takes one. Of
/// several numbers of devices the largest counts; chunks and parameters are those it has unless
/// set.
/// Errors: UsageArgument for an unknown name, suggesting the nearest, and for a number of stages
///         that the builder does not make; ScheduleParameter (V34) for microbatches that it does
///         not take.
[[nodiscard]] Schedule schedule_for(std::string_view name,
                                    const StageGraph& stages,
                                    int microbatches);

}  // namespace stagecraft
