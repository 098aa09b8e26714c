/// apply makes a placed and ordered training DAG from a strategy.
#pragma once

#include "stagecraft/scheduler/dag/dag.h"
#include "stagecraft/scheduler/dag/dag_source.h"
#include "stagecraft/scheduler/strategy/strategy.h"

namespace stagecraft {

/// Applies all directives in their fixed order (STG-1).
/// Ensures: every node has a place, and the graph has no cycle.
/// Errors: ScheduleInvalid with all faults, each with its directive, its filter, the nodes and what
///         to do.
[[nodiscard]] TrainingDag apply(const Strategy& strategy, DagSource source, bool training = true);

}  // namespace stagecraft
