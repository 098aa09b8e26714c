/// elide removes gathers and scatters of sharded buckets that are needless in the order of tasks.
///
/// Computing nodes of one bucket that directly follow each other on their ranks are a chain, and so
/// are nodes that one collective serves. A chain gathers the parameters once, before its first
/// node, and scatters the gradients once, behind its last. A bucket is never in memory twice: its
/// next chain gathers, or makes gradients, after the one before it has ended. The parameters of at
/// most two chains are there, and the gradients of two: a third waits.
/// Source: Piper, section on its scheduler; the limit of two is ours.
#pragma once

#include "stagecraft/scheduler/dag/dag.h"

namespace stagecraft {

/// Renumbers the nodes, and keeps computing nodes in the order of order_streams() by edges.
void elide(TrainingDag& dag);

}  // namespace stagecraft
