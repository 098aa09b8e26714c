/// cut_items converts a row of operators to balanced_cut()'s input; stages_of() converts its result
/// to stages.
///
/// Pure; any thread. Units: seconds and bytes.
#pragma once

#include <vector>

#include "stagecraft/scheduler/planners/balance/balanced_cut.h"
#include "stagecraft/scheduler/planners/request/work_graph.h"

namespace stagecraft {

/// Returns the items. Their time: forward and backward of a microbatch. Their bytes: parameters at
/// their first use, and the kept bytes of `in_flight` microbatches. Their crossing bytes: the
/// results of this operator and of earlier ones that later operators read, each once.
[[nodiscard]] std::vector<CutItem> cut_items(const WorkGraph& graph, double in_flight);

[[nodiscard]] StageOperators stages_of(const std::vector<ItemRange>& ranges);

}  // namespace stagecraft
