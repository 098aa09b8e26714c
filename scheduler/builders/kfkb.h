/// kFkB: 1F1B in groups of k microbatches, so that transfers hide behind the rest of a group.
///
///     d0: F0 F1 F2 F3 . . B0 B1 . B2 . B3          k = 2
///     d1: . F0 F1 B0 . B1 F2 ...
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
