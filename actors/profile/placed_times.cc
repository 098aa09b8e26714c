#include "stagecraft/actors/profile/placed_times.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>

namespace stagecraft {
namespace {

double backward_of(const OperatorCost& cost) {
  return cost.backward_input + cost.backward_weight;
}

/// What of a unit's figure each of its operators gets: in proportion to what it takes alone, alike
/// where that is nothing.
std::vector<double> shares_of(const std::vector<OperatorCost>& alone,
                              const UnitTimes& unit,
                              double (*figure)(const OperatorCost&)) {
  std::vector<double> shares;
  double sum = 0;
  for (const std::size_t node : unit.nodes) {
    shares.push_back(figure(alone[node]));
    sum += shares.back();
  }
  for (double& share : shares) {
    share = sum > 0 ? share / sum : 1 / static_cast<double>(shares.size());
  }
  return shares;
}

}  // namespace

void place_times(const ModelTimes& times, std::vector<OperatorCost>& costs) {
  for (const UnitTimes& unit : times.units) {
    const auto forward =
        shares_of(costs, unit, [](const OperatorCost& cost) { return cost.forward; });
    const auto backward = shares_of(costs, unit, &backward_of);
    for (std::size_t i = 0; i < unit.nodes.size(); ++i) {
      OperatorCost& cost = costs[unit.nodes[i]];
      const double all = backward_of(cost);
      const double towards_values = all > 0 ? cost.backward_input / all : 1;
      const double sums = unit.sums * backward[i];
      const double nodes = (unit.backward - unit.sums) * backward[i];
      cost.forward = unit.forward * forward[i];
      cost.backward_input = nodes * towards_values;
      cost.backward_weight = nodes - cost.backward_input;
      cost.sums = sums;
      (cost.backward_weight > 0 ? cost.backward_weight : cost.backward_input) += sums;
    }
  }
}

void place_peaks(const ModelTimes& times, std::vector<OperatorCost>& costs) {
  std::vector<double> before;
  double kept = 0;
  for (const OperatorCost& cost : costs) {
    before.push_back(kept);
    kept += cost.kept;
  }
  for (const UnitTimes& unit : times.units) {
    for (const std::size_t node : unit.nodes) {
      costs[node].transient = std::max(0.0, unit.peak - before[node]);
    }
  }
}

std::vector<ParameterCost> place_updates(const std::vector<NamedTensor>& all,
                                         double update,
                                         int states,
                                         std::vector<OperatorCost>& costs) {
  const double copies = 2.0 + states;  // of a trained one: itself, its gradient, its state
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
      parameters.push_back({parameter.name, bytes, trains ? bytes * copies : bytes});
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
