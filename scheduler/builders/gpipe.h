/// GPipe runs all forwards, then all backwards.
///
///     F0 F1 F2 F3  .  . B0 B1 B2 B3
///        F0 F1 F2 F3 B0 B1 B2 B3
///
/// Source: Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline
/// Parallelism". On a stage DAG each stage follows the same list.
#pragma once

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

struct GpipeOptions {
  bool reverse_backward = false;  ///< newest activation first; the makespan is the same
};

/// Returns the unit-time array, one stage per row.
/// Errors: ScheduleParameter for no stage, no microbatch or a graph with a cycle.
[[nodiscard]] Schedule gpipe(const StageGraph& stages,
                             int microbatches,
                             const GpipeOptions& options = {});
[[nodiscard]] Schedule gpipe(int stages, int microbatches, const GpipeOptions& options = {});

}  // namespace stagecraft
