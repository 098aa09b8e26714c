/// kFkB: 1F1B in groups of k microbatches, so that transfers hide behind the rest of a group.
///
///     0F0 0F1 0F2 0F3 0B0 0B1  .   .  0B2 0B3     k = 2
///          1F0 1F1 1B0 1B1 1F2 1F3 1B2 1B3
///
/// k = 1 is 1F1B, k = M is GPipe.
/// Source: Wang et al., "Ada-Grouper", and GraphPipe (Jeon et al.).
#pragma once

#include "stagecraft/scheduler/schedule.h"

namespace stagecraft {

/// Returns the unit-time array, one stage per row.
/// Errors: ScheduleParameter unless `k` divides `microbatches`.
[[nodiscard]] Schedule kfkb(int ranks, int microbatches, int k);

}  // namespace stagecraft
