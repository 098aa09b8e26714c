/// evaluation_stages cuts a graph that was captured in evaluation mode into the stages of the
/// program that trains. Evaluations uses it, and so do the captures of an evaluation for other
/// shapes.
#pragma once

#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/stage/partition.h"

namespace stagecraft {

/// Returns the stages of the evaluation, one for each stage of `model` and with its name. Adds a
/// copy to the graph if a stage writes a value that another one made (copy_written.h). Keeps EV-3.
/// Errors: CompilePartition if no such stages keep EV-1.
[[nodiscard]] Partition evaluation_stages(Graph& evaluation, const CompiledProgram& model);

}  // namespace stagecraft
