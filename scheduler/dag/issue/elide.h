/// elide removes gathers and scatters of sharded buckets that a neighbor makes unnecessary.
///
/// Computing nodes of one bucket that directly follow each other on their ranks are a chain. Its
/// first node gathers the parameters, its last one frees them. The last of several successive
/// backwards gives away the gradients of all. The next chain of a bucket gathers only after the
/// previous one has ended, so that a bucket is never in memory twice.
/// Source: Piper, section on its scheduler.
#pragma once

#include <vector>

#include "stagecraft/scheduler/dag/dag.h"
#include "stagecraft/scheduler/dag/issue/stream_order.h"

namespace stagecraft {

/// Renumbers the nodes, so `orders` are no longer valid afterwards. `orders`: of order_streams().
void elide(TrainingDag& dag, const std::vector<StreamOrder>& orders);

}  // namespace stagecraft
