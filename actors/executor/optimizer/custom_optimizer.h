/// CustomOptimizer is an optimizer of a user's own, for ranks that are threads of this process.
///
///   sc::CustomOptimizer{.lr = 0.1, .update = [](const sc::CustomUpdate& u) {
///     u.parameter.add_(u.gradient.sign(), -u.learning_rate);
///   }}
///
/// The callable runs on the ranks' threads, several at once, after the vote: an exception leaves
/// the weights undefined. Results do not depend on the cut as long as the callable reads only its
/// argument. It gets the master of a parameter that has one, with the gradient and state in float32
/// (master_weights.h).
/// OZ-1: the callable exists in its own process only. A rank of another process refuses it by name.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/optimizer/optimizer_row.h"

namespace stagecraft {

/// CustomUpdate holds the arguments of the callable: one parameter in one step. The callable
/// changes `parameter` and `state` in place (`mul_`, `add_`, `copy_`), and nothing else.
struct CustomUpdate {
  std::string_view name;  ///< the parameter's
  at::Tensor parameter;
  at::Tensor gradient;                   ///< averaged, then clipped; may be written to
  const std::vector<at::Tensor>& state;  ///< as CustomOptimizer::state, in the parameter's shape
  std::int64_t step = 1;                 ///< counts from 1
  double learning_rate = 0.0;            ///< of this parameter in this step
  double weight_decay = 0.0;             ///< of this parameter; the callable may apply it
};

struct CustomOptimizer {
  double lr = 1e-3;
  double weight_decay = 0.0;
  std::string name = "custom";     ///< in checkpoints
  std::vector<std::string> state;  ///< names of the tensors it keeps per parameter; zero at first
  std::function<void(const CustomUpdate&)> update;
};

template <class V>
constexpr decltype(auto) visit_fields(CustomOptimizer& m, V&& v) {
  return v(m.lr, m.weight_decay, m.name, m.state);
}

/// CustomOptimizer has no name in the registry: each record has its own.
template <>
struct OptimizerRow<CustomOptimizer> : RowDefaults {
  static constexpr std::string_view kRecord = "CustomOptimizer";
  static constexpr std::array kSettings{kLearningRate, kWeightDecay};
  static std::string conflict(const CustomOptimizer& custom);
  static std::vector<std::string> states(const CustomOptimizer& custom);
  static void update(const CustomOptimizer& custom,
                     const UpdatePass& pass,
                     ParameterColumns& columns);
};

}  // namespace stagecraft
