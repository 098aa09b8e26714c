/// copy_written gives a stage a copy of a value that another stage made and that this stage writes.
///
/// Stages share no memory. Training may make a new value at a border (after dropout, for example)
/// where evaluation passes on the same one. Then an operator after the border may write it in
/// place.
#pragma once

#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/graph/stage_assignment.h"

namespace stagecraft {

/// Adds a copy before the first operator of a stage that uses and writes memory of another stage,
/// if after it only one of the earlier values still shows this memory. All later operators then use
/// the copy. Partition refuses the remaining cases.
/// Requires: the graph is not differentiated.
void copy_written(Graph& graph, StageAssignment& assignment);

}  // namespace stagecraft
