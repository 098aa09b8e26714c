/// placed_times: assigns the times of a whole model to its operators. Used by profile(); runs
/// nothing.
///
/// The time of a backward is divided between values and parameters in proportion to the times that
/// the operator takes alone.
#pragma once

#include <optional>
#include <vector>

#include "stagecraft/actors/profile/model_times.h"
#include "stagecraft/actors/profile/split_cost.h"
#include "stagecraft/compiler/module/named_tensor.h"
#include "stagecraft/scheduler/costs/operator_cost.h"

namespace stagecraft {

/// Replaces the times that the operators take alone by their times inside steps.
/// Requires: times of as many operators as `costs` has.
void place_times(const ModelTimes& times, std::vector<OperatorCost>& costs);

/// Replaces the memory that an operator needs alone by the most that is held while it runs, beyond
/// what the operators before it keep, with gradients that wait for other operators. In a backward,
/// values of operators before it may be gone; they are left out one by one, because a stage that
/// receives such a value keeps it to its end.
/// Requires: likewise; `kept` of all operators is that of a step.
void place_peaks(const ModelTimes& times, std::vector<OperatorCost>& costs);

/// Puts down to operators what waits between I and W. Those that were not measured get what the
/// others have on average for what they keep. Returns that: bytes that wait over bytes kept; 1,
/// with nothing put down, if none was measured.
/// Requires: `waiting` is empty or has one for each node; `kept` of all operators is known.
double place_waiting(const std::vector<std::optional<WaitingBytes>>& waiting,
                     std::vector<OperatorCost>& costs);

/// Returns the parameters that operators use, and puts the time of their update, in proportion to
/// their bytes, down to the first operator that uses each.
/// `states`: tensors that the optimizer keeps for each; `update`: seconds for all of them.
[[nodiscard]] std::vector<ParameterCost> place_updates(const std::vector<NamedTensor>& all,
                                                       double update,
                                                       int states,
                                                       std::vector<OperatorCost>& costs);

}  // namespace stagecraft
