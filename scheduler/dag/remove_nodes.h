/// remove_nodes takes nodes out of a training DAG. Nodes before and after them stay ordered.
#pragma once

#include <set>

#include "stagecraft/scheduler/dag/dag.h"

namespace stagecraft {

/// Adds an order edge between two remaining nodes if a path of removed nodes led from one to the
/// other. The
/// other nodes get new numbers and keep their order.
void remove_nodes(TrainingDag& dag, const std::set<int>& removed);

}  // namespace stagecraft
