/// equal_costs gives every operator of a program the same cost, so that its cut is the same on
/// every machine.
#pragma once

#include <vector>

#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft {

inline std::vector<OperatorCost> equal_costs(const Program& program) {
  std::vector<OperatorCost> costs;
  for (const Node& node : program.compiled().graph.nodes) {
    costs.push_back({.name = operator_name(node), .forward = 1});
  }
  return costs;
}

}  // namespace stagecraft
