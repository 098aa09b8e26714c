/// measured_timeline gives a measured run the form of a simulated one, so that the two can be
/// compared and drawn alike.
///
/// It covers only tasks, over the makespan. It leaves out updates, at any place of a schedule,
/// because a run makes them after the vote, when all tasks have ended (CM-1). Pure.
#pragma once

#include "stagecraft/scheduler/measured/measurements.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft {

/// Returns the list form without updates.
[[nodiscard]] Schedule tasks_only(const Schedule& schedule);

/// Returns the mean times of the run's entries, counted from the start of the first task of any
/// row. A group lasts from the start of its first task to the end of its last.
/// Ensures: entries, busy, idle and makespan are set; entries view `tasks`.
/// Requires: first_difference() finds nothing in the measured steps; measured.steps() > 0; `tasks`
/// is what tasks_only() returned.
[[nodiscard]] Timeline measured_timeline(const Schedule& tasks, const Measurements& measured);

}  // namespace stagecraft
