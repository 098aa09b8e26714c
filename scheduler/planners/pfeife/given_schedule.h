/// best_cut_for_schedule finds where to cut a model for a given schedule, by name or as data.
/// best_cuts_of_builders does the same for the most promising schedules of the registry.
///
/// The schedule may place its stages on any rows, run them once per replica and split its
/// backwards; its own lists count. Pure; any thread.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "stagecraft/scheduler/planners/request/planner.h"

namespace stagecraft {

/// Returns the best cut for every size of a microbatch, the shortest step first. For a builder with
/// chunks or waves it tries several numbers of them. For a builder that uses costs it also tries
/// the schedules made for earlier cuts. Of a builder's schedules it takes those with as many rows
/// as devices and a chain of stages. A schedule given as data has one size, because it fixes the
/// number of microbatches per step.
/// Requires: the request gives a builder or a schedule.
/// Errors: UsageArgument for a schedule of another number of devices, with microbatches that do not
/// divide the batch or are of several sizes, or with more stages than operators; those of the
/// builder; ScheduleInvalid for a schedule that does not run on a chain of its stages;
/// PlanInfeasible if no cut fits the memory, with the tightest device and the bytes that it lacks.
[[nodiscard]] std::vector<Candidate> best_cut_for_schedule(const PlanRequest& request);

/// CutEffort limits how many schedules are examined, and how closely.
struct CutEffort {
  /// The number of best schedules, by the cuts that start a search, to refine by moves of one
  /// place.
  std::size_t moved = 10;
  /// The number of the best of those to refine as best_cut_for_schedule() does.
  std::size_t searched = 4;

  /// Returns an effort that skips no schedule.
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
