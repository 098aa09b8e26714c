/// stage_graph_of: the stages of a partition as the scheduler sees them: who feeds whom, what has a
/// backward, which parameters are tied. Used by whoever compiles.
#pragma once

#include "stagecraft/compiler/partition.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

[[nodiscard]] StageGraph stage_graph_of(const Partition& partition);

}  // namespace stagecraft
