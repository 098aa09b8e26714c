/// schedule_for makes a named schedule for a model that has been cut already: the number of devices
/// follows from the stages. registry.h derives stages from devices instead.
///
/// Used by trainers that get a schedule's name. Pure; any thread.
#pragma once

#include <string_view>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// Returns the schedule that builder `name` makes for these stages, over their own graph if it
/// takes one. If several numbers of devices are possible, the largest is taken; chunks and
/// parameters have their defaults.
/// Errors: UsageArgument for an unknown name, with the nearest known one, and for a number of
/// stages that the builder does not make; ScheduleParameter (V34) for microbatches that it does not
/// take.
[[nodiscard]] Schedule schedule_for(std::string_view name,
                                    const StageGraph& stages,
                                    int microbatches);

}  // namespace stagecraft
