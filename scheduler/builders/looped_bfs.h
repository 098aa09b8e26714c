/// Looped BFS (breadth-first) runs chunks in a loop. A row takes all microbatches through one chunk
/// before the next chunk.
///
///     0F0 0F1 2F0 2F1  .   .  2B0 2B1 0B0 0B1
///          1F0 1F1 3F0 3F1 3B0 3B1 1B0 1B1
///
/// Source: Lamy-Poirier, "Breadth-First Pipeline Parallelism".
#pragma once

#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

struct LoopedBfsOptions {
  bool reverse_backward = false;  ///< newest activation first; the idle time is the same
};

/// Returns the unit-time array of `ranks` rows and ranks x chunks stages.
/// Errors: ScheduleParameter for a count below 1.
[[nodiscard]] Schedule looped_bfs(int ranks,
                                  int microbatches,
                                  int chunks,
                                  const LoopedBfsOptions& options = {});

}  // namespace stagecraft
