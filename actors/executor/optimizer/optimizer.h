/// Optimizer settings for a trainer. Defaults and arithmetic are those of LibTorch's classes of the
/// same names (torch/optim/*.h, optimizer_registry.h).
///
/// Plain records: `visit_fields` lists the fields that travel to a rank, in the order in which the
/// registry names the settings.
/// OZ-1: a CustomOptimizer's callable exists in its own process only. A rank of another process
///       refuses it by name.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft {

/// Adam with decoupled weight decay (Loshchilov and Hutter, "Decoupled weight decay
/// regularization", ICLR 2019).
struct AdamW {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;  ///< divide by the largest second moment so far; a third state tensor
};

/// Adam (Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015); decay is added to
/// the gradient.
struct Adam {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  bool amsgrad = false;  ///< as above
};

struct Sgd {
  double lr = 1e-2;  ///< LibTorch's class has no default for this one
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;  ///< needs momentum, and no dampening
};

/// Adagrad (Duchi, Hazan and Singer, "Adaptive subgradient methods", JMLR 2011).
struct Adagrad {
  double lr = 1e-2;
  double lr_decay = 0.0;  ///< the rate of step k (from 1) is divided by 1 + (k - 1) * lr_decay
  double weight_decay = 0.0;
  double initial_accumulator_value = 0.0;
  double eps = 1e-10;
};

/// RMSprop (Hinton, lecture 6e, 2012), centered as in Graves, "Generating sequences with recurrent
/// neural networks", 2013.
struct RMSprop {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0.0;
  double momentum = 0.0;
  bool centered = false;
};

/// The arguments of a CustomOptimizer's callable: one parameter in one step. The callable changes
/// `parameter` and `state` in place (`mul_`, `add_`, `copy_`), and nothing else.
struct CustomUpdate {
  std::string_view name;  ///< the parameter's
  at::Tensor parameter;
  at::Tensor gradient;                   ///< averaged, then clipped; may be written to
  const std::vector<at::Tensor>& state;  ///< as CustomOptimizer::state, in the parameter's shape
  std::int64_t step = 1;                 ///< counts from 1
  double learning_rate = 0.0;            ///< of this parameter in this step
  double weight_decay = 0.0;             ///< of this parameter; the callable may apply it
};

/// An optimizer of your own, for ranks that are threads of this process:
///
///   sc::CustomOptimizer{.lr = 0.1, .update = [](const sc::CustomUpdate& u) {
///     u.parameter.add_(u.gradient.sign(), -u.learning_rate);
///   }}
///
/// The callable runs on the ranks' threads, several at once, after the vote: an exception leaves
/// the weights undefined. Results do not depend on the cut as long as the callable reads only its
/// argument.
struct CustomOptimizer {
  double lr = 1e-3;
  double weight_decay = 0.0;
  std::string name = "custom";     ///< in checkpoints
  std::vector<std::string> state;  ///< names of the tensors it keeps per parameter; zero at first
  std::function<void(const CustomUpdate&)> update;
};

using Optimizer = std::variant<AdamW, Sgd, Adam, Adagrad, RMSprop, CustomOptimizer>;

[[nodiscard]] inline double base_learning_rate(const Optimizer& optimizer) {
  return std::visit([](const auto& o) { return o.lr; }, optimizer);
}

[[nodiscard]] inline double base_weight_decay(const Optimizer& optimizer) {
  return std::visit([](const auto& o) { return o.weight_decay; }, optimizer);
}

template <class V>
decltype(auto) visit_fields(AdamW& m, V&& v) {
  return v(m.lr, m.beta1, m.beta2, m.eps, m.weight_decay, m.amsgrad);
}
template <class V>
decltype(auto) visit_fields(Adam& m, V&& v) {
  return v(m.lr, m.beta1, m.beta2, m.eps, m.weight_decay, m.amsgrad);
}
template <class V>
decltype(auto) visit_fields(Sgd& m, V&& v) {
  return v(m.lr, m.momentum, m.dampening, m.weight_decay, m.nesterov);
}
template <class V>
decltype(auto) visit_fields(Adagrad& m, V&& v) {
  return v(m.lr, m.lr_decay, m.weight_decay, m.initial_accumulator_value, m.eps);
}
template <class V>
decltype(auto) visit_fields(RMSprop& m, V&& v) {
  return v(m.lr, m.alpha, m.eps, m.weight_decay, m.momentum, m.centered);
}
template <class V>
decltype(auto) visit_fields(CustomOptimizer& m, V&& v) {
  return v(m.lr, m.weight_decay, m.name, m.state);
}

}  // namespace stagecraft
