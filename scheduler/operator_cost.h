/// OperatorCost: what one operator of a model costs on one microbatch, measured or stated.
///
/// Data for those who cut a model into stages; the simulator knows stages only. compiler/
/// operator_costs.h measures it, costs.json keeps it. A value. Units: seconds and bytes.
#pragma once

#include <string>

#include "stagecraft/base/ids.h"

namespace stagecraft {

/// No stage: an operator of a model that has not been cut.
inline constexpr StageId kNoStage{-1};

struct OperatorCost {
  int id = 0;        ///< its place among the model's operators, in the order of the forward
  std::string name;  ///< for people: "aten::linear"
  StageId stage = kNoStage;
  double forward = 0;
  double backward_input = 0;   ///< towards values that were computed
  double backward_weight = 0;  ///< towards parameters
  double kept = 0;             ///< bytes held from forward to backward
  double transient = 0;        ///< bytes held only while it runs
  double output = 0;           ///< bytes of what it returns

  friend bool operator==(const OperatorCost&, const OperatorCost&) = default;
};

}  // namespace stagecraft
