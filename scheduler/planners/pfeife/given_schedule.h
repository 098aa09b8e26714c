/// best_cut_for_schedule: where to cut a model for a schedule that somebody gives, by name or as it
/// is; best_cuts_of_builders: the same for those of the registry that look best.
///
/// The schedule may place its stages on rows as it likes, run them once per replica and split its
/// backwards; its own lists are what counts. Pure; any thread.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "stagecraft/scheduler/planners/planner.h"

namespace stagecraft {

/// Returns the best cut for every size of a microbatch, the shortest step first; of a builder with
/// chunks or waves for several of them, and of one that looks at costs those that it made for the
/// cuts before them too. Of a builder's schedules those with as many rows as there are devices,
/// whose stages are a chain; a schedule given as it is has one size, since it says how many
/// microbatches a step has.
/// Requires: the request gives a builder or a schedule.
/// Errors: UsageArgument for a schedule of another number of devices, whose microbatches do not
///         divide the batch or are of several sizes, or with more stages than there are operators;
///         those of the builder; ScheduleInvalid for a schedule that does not run on a chain of its
///         stages; PlanInfeasible where no cut fits the memory, with the tightest device and the
///         bytes it lacks.
[[nodiscard]] std::vector<Candidate> best_cut_for_schedule(const PlanRequest& request);

/// How many schedules of all are looked at how closely.
struct CutEffort {
  /// By moves of one place: the best by the cuts that a search starts with.
  std::size_t moved = 10;
  /// As best_cut_for_schedule() does: the best of those.
  std::size_t searched = 4;

  /// None is passed over.
  [[nodiscard]] static CutEffort most() {
    return {.moved = std::numeric_limits<std::size_t>::max(), .searched = 12};
  }
};

/// Returns cuts for schedules of the registry, of every size of a microbatch, the shortest step
/// first. Requires: as the planner pfeife.
/// Errors: PlanInfeasible, as above.
[[nodiscard]] std::vector<Candidate> best_cuts_of_builders(const PlanRequest& request,
                                                           const CutEffort& effort = {});

}  // namespace stagecraft
