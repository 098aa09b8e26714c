/// Which buffers of a module a stage's forward writes: running statistics, counters.
#pragma once

#include <vector>

#include "stagecraft/compiler/graph.h"
#include "stagecraft/compiler/stage_program.h"

namespace stagecraft {

/// Returns positions in Graph::buffers, ascending. What such a buffer ends with depends on the
/// order of the stage's forwards, and two copies of the stage would end with two different ones.
[[nodiscard]] std::vector<int> written_buffers(const Graph& graph, const StageProgram& stage);

}  // namespace stagecraft
