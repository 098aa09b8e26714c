/// placed_times assigns the times of a whole model to its operators. profile() uses it; it runs
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
/// the values kept by the operators before it, with gradients that wait for other operators. In a
/// backward, values of operators before it may be gone. They are left out one by one, because a
/// stage that receives such a value keeps it to its end.
/// Requires: likewise; `kept` of all operators is that of a step.
void place_peaks(const ModelTimes& times, std::vector<OperatorCost>& costs);

/// Assigns to operators the bytes that wait between I and W. An operator that was not measured gets
/// the average of the others in proportion to its kept bytes. Returns that average: bytes that wait
/// over bytes kept. If none was measured, it assigns nothing and returns 1.
/// Requires: `waiting` is empty or has one for each node; `kept` of all operators is known.
double place_waiting(const std::vector<std::optional<WaitingBytes>>& waiting,
                     std::vector<OperatorCost>& costs);

/// Returns the parameters that operators use, and assigns the time of their update, in proportion
/// to their bytes, to the first operator that uses each.
/// `states`: tensors that the optimizer keeps for each; `update`: seconds for all of them.
/// `master_weights`: parameters of half types have masters, and states like these.
[[nodiscard]] std::vector<ParameterCost> place_updates(const std::vector<NamedTensor>& all,
                                                       double update,
                                                       int states,
                                                       bool master_weights,
                                                       std::vector<OperatorCost>& costs);

}  // namespace stagecraft
