/// marked_stages: the stages that a module's own markers make.
///
/// An operator outside all markers, those of the loss among them, belongs to the stage of the
/// operand that is furthest downstream in the stage DAG (of equally deep ones the last entered),
/// or, with none, to that of the reader that is least far downstream (of equally deep ones the
/// first entered), so that values only flow downstream; a graph without markers is one stage.
/// Stages are numbered in the order in which the module enters them.
#pragma once

#include "stagecraft/compiler/cut/stage_assignment.h"
#include "stagecraft/compiler/graph.h"

namespace stagecraft {

[[nodiscard]] StageAssignment marked_stages(const Graph& graph);

}  // namespace stagecraft
