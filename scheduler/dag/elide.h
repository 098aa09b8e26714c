/// elide removes gathers and scatters of sharded buckets that a neighbor makes needless.
///
/// Computing nodes of one bucket that directly follow each other on their ranks are a chain. Its
/// first node gathers the parameters, its last one frees them. Of the backwards in a row, the last
/// one gives away the gradients of all. The next chain of a bucket gathers only after the one
/// before has ended, so that a bucket is never in memory twice.
/// Source: Piper, section on its scheduler.
#pragma once

#include <vector>

#include "stagecraft/scheduler/dag/dag.h"
#include "stagecraft/scheduler/dag/stream_order.h"

namespace stagecraft {

/// `orders`: of order_streams(); nodes are renumbered, so they hold no longer.
void elide(TrainingDag& dag, const std::vector<StreamOrder>& orders);

}  // namespace stagecraft
