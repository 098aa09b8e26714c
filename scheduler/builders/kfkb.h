/// kFkB is 1F1B in groups of k microbatches, so that transfers overlap the rest of a group.
///
///     0F0 0F1 0F2 0F3 0B0 0B1  .   .  0B2 0B3     k = 2
///          1F0 1F1 1B0 1B1 1F2 1F3 1B2 1B3
///
/// k = 1 is 1F1B, k = M is GPipe. On a stage graph every stage may have its own k and its own size
/// of microbatches (SG-4). A stage runs l forwards, then k backwards and k forwards in turn. l
/// follows from the samples that the stage's consumers have in flight (in_flight.h).
///
///     0F0 0F1 0F2 0F3  .   .   .  0B0 0B1 0B2 0B3     sizes 1 and 2, k = 1: stage 1 takes two
///          .  1F0  .  1F1 1B0 1B1                     microbatches of stage 0 as one
///
/// Source: Wang et al., "Ada-Grouper", and GraphPipe (Jeon et al.).
#pragma once

#include <vector>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// Returns the unit-time array, one stage per row.
/// Errors: ScheduleParameter unless `k` divides `microbatches`.
[[nodiscard]] Schedule kfkb(int ranks, int microbatches, int k);

/// Returns the unit-time array for a graph. `k`: one for each stage, or one for all.
/// Errors: ScheduleParameter for a graph with a cycle or without stages, for a number of k that is
/// neither 1 nor that of the stages, and unless size times k of every stage divides `microbatches`.
[[nodiscard]] Schedule kfkb(const StageGraph& stages, int microbatches, const std::vector<int>& k);

}  // namespace stagecraft
