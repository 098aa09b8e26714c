/// cut_like: cuts a graph where another graph of the same model was cut.
///
/// Used where a model is captured anew for another shape.
/// LK-1: a model that was cut at its markers is cut at them again.
#pragma once

#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/compiler/cut/stage_assignment.h"
#include "stagecraft/compiler/graph.h"

namespace stagecraft {

/// Returns the stage of every operator: that of its namesake, where both graphs have the same row
/// of operators. Otherwise those that use parameters or buffers go to the stage that has them, if
/// it is one, and the others to these as operators outside of markers do (marked_stages.h).
[[nodiscard]] StageAssignment cut_like(const Graph& graph, const CompiledProgram& model);

}  // namespace stagecraft
