/// apply makes a placed and ordered training DAG from a strategy.
#pragma once

#include <cstdint>

#include "stagecraft/scheduler/dag/dag.h"
#include "stagecraft/scheduler/dag/dag_source.h"
#include "stagecraft/scheduler/strategy/strategy.h"

namespace stagecraft {

/// The most forwards of one step, over all chunks and microbatches. The limit keeps a typing error
/// from taking memory in proportion.
inline constexpr std::int64_t kMaxForwards = std::int64_t{1} << 21U;

/// Applies all directives in their fixed order (STG-1).
/// Ensures: every node has a place, and the graph has no cycle.
/// Errors: ScheduleInvalid with all faults, each with its directive, its filter, the nodes and the
/// remedy.
[[nodiscard]] TrainingDag apply(const Strategy& strategy, DagSource source, bool training = true);

}  // namespace stagecraft
