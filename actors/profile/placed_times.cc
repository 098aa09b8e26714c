#include "stagecraft/actors/profile/placed_times.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>

#include "stagecraft/compiler/libtorch/half_type.h"

namespace stagecraft {

void place_times(const ModelTimes& times, std::vector<OperatorCost>& costs) {
  for (std::size_t n = 0; n < costs.size(); ++n) {
    OperatorCost& cost = costs[n];
    const OperatorTimes& in_step = times.operators[n];
    const double all = cost.backward_input + cost.backward_weight;
    const double towards_values = all > 0 ? cost.backward_input / all : 1;
    const double nodes = in_step.backward - in_step.sums;
    cost.forward = in_step.forward;
    cost.backward_input = nodes * towards_values;
    cost.backward_weight = nodes - cost.backward_input;
    cost.sums = in_step.sums;
    (cost.backward_weight > 0 ? cost.backward_weight : cost.backward_input) += in_step.sums;
  }
}

void place_peaks(const ModelTimes& times, std::vector<OperatorCost>& costs) {
  double kept = 0;  // by the operators before this one
  for (std::size_t n = 0; n < costs.size(); ++n) {
    costs[n].transient =
        std::max(times.operators[n].forward_peak - kept, times.operators[n].backward_peak);
    kept += costs[n].kept;
  }
}

double place_waiting(const std::vector<std::optional<WaitingBytes>>& waiting,
                     std::vector<OperatorCost>& costs) {
  double kept = 0;
  WaitingBytes all;
  for (std::size_t n = 0; n < waiting.size(); ++n) {
    if (waiting[n]) {
      kept += costs[n].kept;
      all.values += waiting[n]->values;
      all.gradients += waiting[n]->gradients;
    }
  }
  if (kept <= 0) {
    return 1;
  }
  for (std::size_t n = 0; n < costs.size(); ++n) {
    const double share = costs[n].kept / kept;
    const WaitingBytes own =
        waiting[n].value_or(WaitingBytes{all.values * share, all.gradients * share});
    costs[n].waiting = own.values + own.gradients;
    costs[n].gradient = own.gradients;
  }
  return (all.values + all.gradients) / kept;
}

std::vector<ParameterCost> place_updates(const std::vector<NamedTensor>& all,
                                         double update,
                                         int states,
                                         bool master_weights,
                                         std::vector<OperatorCost>& costs) {
  // Counts a trained parameter, its gradient and its states. Masters and states are twice as wide.
  const auto copies_of = [&](at::ScalarType type) {
    return master_weights && is_half_type(type) ? 2.0 + 2.0 * (1 + states) : 2.0 + states;
  };
  std::map<std::string, OperatorCost*> first;
  for (OperatorCost& cost : costs) {
    for (const std::string& name : cost.parameters) {
      first.emplace(name, &cost);
    }
  }
  std::vector<ParameterCost> parameters;
  double trained = 0;
  for (const NamedTensor& parameter : all) {
    const auto bytes = static_cast<double>(parameter.tensor.nbytes());
    const bool trains = parameter.tensor.requires_grad();
    if (first.contains(parameter.name)) {
      parameters.push_back({parameter.name,
                            bytes,
                            trains ? bytes * copies_of(parameter.tensor.scalar_type()) : bytes});
      trained += trains ? bytes : 0;
    }
  }
  for (const ParameterCost& parameter : parameters) {
    if (parameter.held > parameter.bytes) {
      first.at(parameter.name)->update += update * parameter.bytes / trained;
    }
  }
  return parameters;
}

}  // namespace stagecraft
