/// Makes a chain of operators whose backward takes twice their forward, for tests of planners.
#pragma once

#include <vector>

#include "stagecraft/scheduler/costs/costs.h"

namespace stagecraft {

/// Each operator reads `bytes` of the one before.
inline Costs chain_costs(const std::vector<double>& forwards, double bytes = 1) {
  Costs costs;
  for (std::size_t i = 0; i < forwards.size(); ++i) {
    const auto id = static_cast<int>(i);
    OperatorCost op{.id = id,
                    .forward = forwards[i],
                    .backward_input = forwards[i],
                    .backward_weight = forwards[i]};
    if (id > 0) {
      op.reads = {{id - 1, 0, bytes}};
    }
    costs.operators.push_back(std::move(op));
  }
  return costs;
}

}  // namespace stagecraft
