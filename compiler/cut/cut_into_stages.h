/// cut_into_stages: from a Cut to the stage of every operator.
///
/// Stages of a balanced cut and of places are consecutive operators, and begin at cut points
/// (cut_points.h). They are called by the module that their first parameters belong to.
#pragma once

#include <vector>

#include "stagecraft/compiler/cut/cut.h"
#include "stagecraft/compiler/cut/stage_assignment.h"
#include "stagecraft/compiler/graph.h"
#include "stagecraft/scheduler/operator_cost.h"

namespace stagecraft {

/// `costs`: of every operator, for a balanced cut.
/// Errors: UsageArgument for a place that is not there or not behind the one before, more stages
///         than the graph has parts that can be taken apart, sets that lack an operator or have one
///         twice, costs of another model, and those of balanced_cut.
[[nodiscard]] StageAssignment cut_into_stages(const Graph& graph,
                                              const Cut& cut,
                                              const std::vector<OperatorCost>& costs);

}  // namespace stagecraft
