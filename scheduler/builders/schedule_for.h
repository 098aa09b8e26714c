/// schedule_for makes a named schedule for a model that has been cut already: the number of devices
/// follows from the stages. In registry.h the stages follow from the devices.
///
/// Trainers that get a schedule's name use it. Pure; any thread may call it.
#pragma once

#include <string_view>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// Returns the schedule that builder `name` makes for these stages, over their own graph if the
/// builder takes one. If several numbers of devices are possible, the largest is taken. Chunks and
/// parameters have their defaults.
/// Errors: UsageArgument for an unknown name, with the nearest known one, and for a number of
/// stages that the builder does not make; ScheduleParameter (V34) for a number of microbatches that
/// it does not take.
[[nodiscard]] Schedule schedule_for(std::string_view name,
                                    const StageGraph& stages,
                                    int microbatches);

}  // namespace stagecraft
