/// best_cut_for_schedule: where to cut a model for a schedule that somebody gives, by name or as it
/// is.
///
/// The schedule may place its stages on rows as it likes, run them once per replica and split its
/// backwards; its own lists are what counts. Pure; any thread.
#pragma once

#include <vector>

#include "stagecraft/scheduler/planners/planner.h"

namespace stagecraft {

/// Returns the best cut for every size of a microbatch, the shortest step first; of a builder that
/// looks at costs those that it made for the cuts before them too. Of a builder's schedules that
/// with as many rows as there are devices, whose stages are a chain; a schedule given as it is has
/// one size, since it says how many microbatches a step has.
/// Requires: the request gives a builder or a schedule.
/// Errors: UsageArgument for a schedule of another number of devices, whose microbatches do not
///         divide the batch or are of several sizes, or with more stages than there are operators;
///         those of the builder; ScheduleInvalid for a schedule that does not run on a chain of its
///         stages; PlanInfeasible where no cut fits the memory, with the tightest device and the
///         bytes it lacks.
[[nodiscard]] std::vector<Candidate> best_cut_for_schedule(const PlanRequest& request);

}  // namespace stagecraft
