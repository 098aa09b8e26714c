/// elide removes gathers and scatters of sharded buckets that a neighbor makes unnecessary.
///
/// Computing nodes of one bucket that directly follow each other on their ranks are a chain. Its
/// first node gathers the parameters, its last one frees them. The last of several successive
/// backwards gives away the gradients of all. The next chain of a bucket gathers only after the
/// previous one has ended, so that a bucket is never in memory twice. And it gathers only after the
/// chain before the previous one of any bucket, and makes gradients only after that chain's are
/// scattered: the parameters and gradients of at most two chains are there.
/// Source: Piper, section on its scheduler.
#pragma once

#include "stagecraft/scheduler/dag/dag.h"

namespace stagecraft {

/// Renumbers the nodes. The computing nodes then have the order of order_streams(), by edges;
/// collectives have none yet, as the nodes that are left may need another.
void elide(TrainingDag& dag);

}  // namespace stagecraft
