/// copy_written gives a stage a copy of a value that another stage made and that this stage writes.
///
/// Stages share no memory. If training makes a new value at a border (behind dropout, for example),
/// evaluation may pass on the same one, and an operator behind the border may write it in place.
#pragma once

#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/graph/stage_assignment.h"

namespace stagecraft {

/// Adds a copy before the first operator of a stage that uses memory of another stage and writes
/// it, if from there on only one of the values made before shows this memory. All later operators
/// then use the copy. Partition refuses the remaining cases.
/// Requires: the graph is not differentiated.
void copy_written(Graph& graph, StageAssignment& assignment);

}  // namespace stagecraft
