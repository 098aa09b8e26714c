/// DualPipe runs two copies of the pipeline in opposite directions, so every row has work from both
/// ends.
///
///     replica 0: stages 0 .. P-1 down the rows; replica 1: stages P .. 2P-1 up the rows
///
/// Half of the microbatches enter at each end. Weights are held twice; the gradients of a stage and
/// its replica are summed before the update. Source: DeepSeek-AI, "DeepSeek-V3 Technical Report".
#pragma once

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// Returns the unit-time array, with its two chains as a header.
/// Errors: ScheduleParameter unless ranks and microbatches are even and microbatches >= 2 x ranks.
[[nodiscard]] Schedule dualpipe(int ranks, int microbatches);

/// Returns two chains of `ranks` stages; the second is a replica of the first.
[[nodiscard]] StageGraph two_replicas(int ranks);

}  // namespace stagecraft
