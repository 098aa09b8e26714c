/// stage_graph_of returns the scheduler's view of a partition: the stages, the edges between them,
/// which of them have a backward, and which parameters are tied. All compiling code uses it.
#pragma once

#include "stagecraft/compiler/stage/partition.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

[[nodiscard]] StageGraph stage_graph_of(const Partition& partition);

}  // namespace stagecraft
