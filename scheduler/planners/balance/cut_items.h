/// cut_items: a row of operators as balanced_cut() looks at it, and stages of what it returns.
///
/// Pure; any thread. Units: seconds and bytes.
#pragma once

#include <vector>

#include "stagecraft/scheduler/balanced_cut.h"
#include "stagecraft/scheduler/planners/work_graph.h"

namespace stagecraft {

/// Time: forward and backward of a microbatch. Bytes: parameters where they are used first, and
/// what is kept of `in_flight` microbatches. Crossing: the results of this operator and those
/// before it that later ones read, each once.
[[nodiscard]] std::vector<CutItem> cut_items(const WorkGraph& graph, double in_flight);

[[nodiscard]] StageOperators stages_of(const std::vector<ItemRange>& ranges);

}  // namespace stagecraft
