/// copy_written: gives a stage a copy of a value that another stage made and that it writes.
///
/// Stages share no memory. Where training has a new value at a border (behind dropout, say),
/// evaluation may hand on the same one, and an operator behind the border writes it in place.
#pragma once

#include "stagecraft/compiler/cut/stage_assignment.h"
#include "stagecraft/compiler/graph.h"

namespace stagecraft {

/// Adds a copy before the first operator of a stage that uses such memory, where from there on one
/// value alone of those made before shows it: all that follows then uses the copy. What is left
/// partition refuses.
/// Requires: the graph is not differentiated.
void copy_written(Graph& graph, StageAssignment& assignment);

}  // namespace stagecraft
