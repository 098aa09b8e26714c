/// UpdatePass is one update of parameters that share dtype, weight decay and rate, in the form that
/// an optimizer's arithmetic takes.
///
/// The registry (`apply`) makes it, the source of each optimizer reads it, on the plan thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/optimizer/parameter_groups.h"

namespace stagecraft {

/// OptimizedParameter is one parameter with everything that the optimizer changes; all tensors have
/// the parameter's shape.
struct OptimizedParameter {
  at::Tensor parameter, gradient;
  at::Tensor master = {};         ///< of float32 (master_weights.h); undefined: it has none
  std::vector<at::Tensor> state;  ///< in the order of state_names, of the type of updated()
  ParameterRule rule;             ///< not frozen
  std::string name;

  /// Returns what the optimizer changes: the master, or else the parameter.
  [[nodiscard]] const at::Tensor& updated() const { return master.defined() ? master : parameter; }
};

/// ParameterColumns holds parameters of one dtype, decay and rate, in columns as fused kernels take
/// them.
struct ParameterColumns {
  std::vector<at::Tensor> parameters, gradients;
  std::vector<std::vector<at::Tensor>> state;  ///< by state tensor, then by parameter
  std::vector<const OptimizedParameter*> rows;
};

/// UpdatePass holds the values that all parameters of a pass share.
struct UpdatePass {
  double rate = 0.0;
  double decay = 0.0;
  std::int64_t step = 1;  ///< counts from 1
  double divisor = 1.0;   ///< of the gradients

  /// Returns the step in the form of the kernels: a number for each parameter. They only read it.
  [[nodiscard]] std::vector<at::Tensor> steps(const ParameterColumns& columns) const;

  /// Divides a gradient in place.
  void divide(const at::Tensor& gradient) const;

  /// Returns the divisor for fused kernels, which divide as they read and write the quotient back.
  /// They take it in float and round it to the parameters' type. So grad_scale divides gradients of
  /// other types itself, before: keeps OR-2.
  [[nodiscard]] std::optional<at::Tensor> grad_scale(const ParameterColumns& columns) const;
};

}  // namespace stagecraft
