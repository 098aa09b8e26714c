/// OperatorCost holds the costs of one operator of a model on one microbatch, the results that it
/// reads, and the parameters that it uses. The costs are measured or stated.
///
/// Code that cuts a model into stages uses it; the simulator knows stages only.
/// compiler/measure/operator_costs.h measures it; costs.json keeps it. Values. Units: seconds and
/// bytes.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/base/ids.h"

namespace stagecraft {

/// The stage of an operator whose model has not been cut.
inline constexpr StageId kNoStage{-1};

/// OperatorRead is a result of another operator that this operator reads.
struct OperatorRead {
  int producer = 0;  ///< the operator's id
  int output = 0;    ///< which of its results
  double bytes = 0;  ///< of the result

  friend bool operator==(const OperatorRead&, const OperatorRead&) = default;
};

/// ParameterCost describes a parameter of the model. Several operators may use the same one.
struct ParameterCost {
  std::string name;
  double bytes = 0;
  double held = 0;  ///< bytes, with its gradient and its optimizer state

  /// Returns the bytes of its gradient; 0 if it is frozen.
  [[nodiscard]] double trained() const { return held > bytes ? bytes : 0; }

  friend bool operator==(const ParameterCost&, const ParameterCost&) = default;
};

struct OperatorCost {
  int id = 0;        ///< its place in the order of the forward
  std::string name;  ///< for people: "aten::linear"
  StageId stage = kNoStage;
  double forward = 0;
  double backward_input = 0;   ///< gradients of computed values
  double backward_weight = 0;  ///< gradients of parameters
  double sums = 0;       ///< part of the backward: adds its gradients to those of other readers
  double update = 0;     ///< once a step, of the parameters that it is the first to use
  double kept = 0;       ///< bytes held from forward to backward
  double transient = 0;  ///< most bytes while it runs, beyond those that earlier operators keep
  double waiting = 0;    ///< bytes held between the halves of a split backward, I and W
  double gradient = 0;   ///< part of `waiting`: the gradient that W starts from
  double output = 0;     ///< bytes of its results
  double input = 0;      ///< bytes of the batch that it reads
  std::vector<OperatorRead> reads;      ///< results of earlier operators
  std::vector<std::string> parameters;  ///< by name
  /// True if the operator writes the memory of the operator before it. Then both stay in one stage,
  /// with no cut between them.
  bool joined = false;

  /// Returns the time of forward and backward.
  [[nodiscard]] double time() const { return forward + backward_input + backward_weight; }

  friend bool operator==(const OperatorCost&, const OperatorCost&) = default;
};

}  // namespace stagecraft
