/// stage_program_of: takes what a stage is about out of the graph of the whole model.
///
/// Used by partition, for each stage and for the whole model as one.
#pragma once

#include <vector>

#include "stagecraft/compiler/graph.h"
#include "stagecraft/compiler/stage_program.h"

namespace stagecraft {

/// Fills in everything but names, inputs and outputs, which are `stage`'s already: its one chunk
/// with `nodes`, the parameters, buffers and constants they read, the facts of all values, the
/// attachments. Keeps SP-3.
void complete_from(const Graph& graph, std::vector<Node> nodes, StageProgram& stage);

}  // namespace stagecraft
