/// placed_times: puts what a whole model takes down to its operators. Used by profile(); runs
/// nothing.
///
/// Operators of a fused region are timed together; each gets a share in proportion to what it takes
/// alone. So is a backward divided between values and parameters.
#pragma once

#include <vector>

#include "stagecraft/actors/executor/model_times.h"
#include "stagecraft/compiler/named_tensor.h"
#include "stagecraft/scheduler/operator_cost.h"

namespace stagecraft {

/// Puts times of steps into the place of those that the operators take alone.
/// Ensures: forwards and backwards of a unit's operators add up to the unit's.
/// Requires: the units' nodes are places in `costs`.
void place_times(const ModelTimes& times, std::vector<OperatorCost>& costs);

/// Puts what a unit holds at most in the place of what its operators need alone: beyond what those
/// before them keep, gradients that wait for other operators included.
/// Requires: likewise; `kept` of all operators is that of a step.
void place_peaks(const ModelTimes& times, std::vector<OperatorCost>& costs);

/// Returns the parameters that operators use, and puts the time of their update, in proportion to
/// their bytes, down to the first operator that uses each.
/// `states`: tensors that the optimizer keeps for each; `update`: seconds for all of them.
[[nodiscard]] std::vector<ParameterCost> place_updates(const std::vector<NamedTensor>& all,
                                                       double update,
                                                       int states,
                                                       std::vector<OperatorCost>& costs);

}  // namespace stagecraft
