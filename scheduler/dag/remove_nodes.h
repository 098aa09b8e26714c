/// remove_nodes takes nodes out of a training DAG. Nodes before and after them stay ordered.
#pragma once

#include <set>

#include "stagecraft/scheduler/dag/dag.h"

namespace stagecraft {

/// Connects nodes that have removed nodes alone between them by order edges. The
/// other nodes get new numbers and keep their order.
void remove_nodes(TrainingDag& dag, const std::set<int>& removed);

}  // namespace stagecraft
