/// remove_nodes takes nodes out of a training DAG; what they stood between stays ordered.
#pragma once

#include <set>

#include "stagecraft/scheduler/dag/dag.h"

namespace stagecraft {

/// Connects every predecessor of a removed node with its successors, by order edges. The other
/// nodes are renumbered and keep their order.
void remove_nodes(TrainingDag& dag, const std::set<int>& removed);

}  // namespace stagecraft
