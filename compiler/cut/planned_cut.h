/// planned_cut expresses the stages of a plan as a cut of the model that was profiled.
#pragma once

#include "stagecraft/compiler/cut/cut.h"
#include "stagecraft/scheduler/planners/proposal.h"

namespace stagecraft {

/// Returns the operators of every stage. `costs`: the costs of the plan's request.
[[nodiscard]] OperatorSets planned_cut(const Costs& costs, const PlanProposal& proposal);

}  // namespace stagecraft
