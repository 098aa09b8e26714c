/// cut_into_stages turns a Cut into the stage of every operator.
///
/// Stages of a balanced cut and of places are consecutive operators and begin at cut points
/// (cut_points.h). The name of each is that of the module of its first parameters.
#pragma once

#include <vector>

#include "stagecraft/compiler/cut/cut.h"
#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/graph/stage_assignment.h"
#include "stagecraft/scheduler/costs/operator_cost.h"

namespace stagecraft {

/// Returns the stages. `costs`: the cost of every operator, for a balanced cut.
/// Errors: UsageArgument for a place that does not exist or does not follow the one before, for
///         more stages than the graph has separable parts, for sets that lack an operator or have
///         one twice, for costs of another model, and the errors of balanced_cut. UsageFile for
///         a cut whose file names the operators of another model.
[[nodiscard]] StageAssignment cut_into_stages(const Graph& graph,
                                              const Cut& cut,
                                              const std::vector<OperatorCost>& costs);

}  // namespace stagecraft
