/// stage_program_of extracts the parts of a stage from the graph of the whole model.
///
/// partition uses it for each stage and for the whole model as one.
#pragma once

#include <vector>

#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/stage/stage_program.h"

namespace stagecraft {

/// Fills in everything except names, inputs and outputs, which `stage` already has: its one chunk
/// with `nodes`, the parameters, buffers and constants that they read, the facts of all values, the
/// attachments. Keeps SP-3.
void complete_from(const Graph& graph, std::vector<Node> nodes, StageProgram& stage);

}  // namespace stagecraft
