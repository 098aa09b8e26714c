/// OperatorCost: what one operator of a model costs on one microbatch, what it reads, and which
/// parameters it uses; measured or stated.
///
/// Data for those who cut a model into stages; the simulator knows stages only. compiler/
/// operator_costs.h measures it, costs.json keeps it. Values. Units: seconds and bytes.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/base/ids.h"

namespace stagecraft {

/// No stage: an operator of a model that has not been cut.
inline constexpr StageId kNoStage{-1};

/// A result of another operator that is read.
struct OperatorRead {
  int producer = 0;  ///< the operator's id
  int output = 0;    ///< which of its results
  double bytes = 0;  ///< of the result

  friend bool operator==(const OperatorRead&, const OperatorRead&) = default;
};

/// A parameter of the model. Several operators may use one.
struct ParameterCost {
  std::string name;
  double bytes = 0;
  double held = 0;  ///< bytes: with its gradient and what the optimizer keeps for it

  friend bool operator==(const ParameterCost&, const ParameterCost&) = default;
};

struct OperatorCost {
  int id = 0;        ///< its place among the model's operators, in the order of the forward
  std::string name;  ///< for people: "aten::linear"
  StageId stage = kNoStage;
  double forward = 0;
  double backward_input = 0;   ///< towards values that were computed
  double backward_weight = 0;  ///< towards parameters
  double sums = 0;       ///< part of the backward: adding its gradients to those of other readers
  double update = 0;     ///< of the parameters that it is the first to use, once a step
  double kept = 0;       ///< bytes held from forward to backward
  double transient = 0;  ///< most bytes while it runs, beyond what those before it keep
  double waiting = 0;    ///< bytes held between the halves of a split backward, I and W
  double gradient = 0;   ///< part of `waiting`: the gradient from which its W starts
  double output = 0;     ///< bytes of what it returns
  double input = 0;      ///< bytes of the batch that it reads
  std::vector<OperatorRead> reads;      ///< of operators before it
  std::vector<std::string> parameters;  ///< by name
  /// It stays in the stage of the operator before it, whose memory it writes: no cut between.
  bool joined = false;

  /// Forward and backward.
  [[nodiscard]] double time() const { return forward + backward_input + backward_weight; }

  friend bool operator==(const OperatorCost&, const OperatorCost&) = default;
};

}  // namespace stagecraft
