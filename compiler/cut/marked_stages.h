/// marked_stages finds the stages that a module's own markers make.
///
/// An operator outside all markers, such as those of the loss, belongs to the stage of its furthest
/// downstream operand in the stage DAG (of equally deep stages, the last entered). Without operands
/// in stages, it belongs to the stage of its least far downstream reader (of equally deep stages,
/// the first entered). Values therefore only flow downstream. A graph without markers is one stage.
/// Stages are numbered in the order in which the module enters them.
#pragma once

#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/graph/stage_assignment.h"

namespace stagecraft {

[[nodiscard]] StageAssignment marked_stages(const Graph& graph);

}  // namespace stagecraft
