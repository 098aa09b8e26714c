/// cut_like: cuts a graph where another graph of the same model was cut.
///
/// Used where a model is captured anew for another shape.
/// LK-1: markers of the module decide, as they did before.
#pragma once

#include <vector>

#include "stagecraft/compiler/graph.h"
#include "stagecraft/compiler/partition.h"

namespace stagecraft {

/// Returns `graph` with its operators marked for the stages of `like`, for partition(): in a graph
/// without markers each operator is marked for the stage that its namesake is in, where both graphs
/// have the same row of operators; else those that use parameters or buffers for the stage that has
/// them, and the others fall to these as unmarked ones do.
[[nodiscard]] Graph cut_like(Graph graph, const Graph& model, const Partition& like);

}  // namespace stagecraft
