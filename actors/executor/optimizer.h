/// Optimizer settings, and the rule they stand for. The arithmetic is LibTorch's fused kernels, per
/// parameter view.
#pragma once

#include <cstdint>
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
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay =
      0.1;  ///< not applied to parameters of fewer than two dimensions (norms, biases)
};

struct Sgd {
  double lr = 1e-2;
  double momentum = 0.0;
  double weight_decay = 0.0;  ///< as above
};

using Optimizer = std::variant<AdamW, Sgd>;

/// The learning rate over the steps: `warmup` steps rise linearly to the optimizer's lr, then it
/// stays, or falls as half a cosine to zero at `total_steps`.
struct LearningRate {
  enum class Kind : std::uint8_t { Constant, Cosine };
  Kind kind = Kind::Constant;
  std::int64_t warmup = 0;
  std::int64_t total_steps = 0;  ///< required by Cosine
};

/// Errors: UsageArgument for settings that cannot train: not finite, negative, or a decay outside
/// of [0, 1).
void check_optimizer(const Optimizer& optimizer);

/// The learning rate of step `step` (the first is 0).
[[nodiscard]] double learning_rate_at(const LearningRate& schedule, double base, std::int64_t step);
[[nodiscard]] double base_learning_rate(const Optimizer& optimizer);

/// "adamw", "sgd": the name an optimizer has in checkpoints.
[[nodiscard]] std::string_view optimizer_name(const Optimizer& optimizer);

/// Names of the state tensors an optimizer keeps per parameter, in the order in which they are
/// stored.
[[nodiscard]] std::vector<std::string_view> state_names(const Optimizer& optimizer);

/// One parameter with everything the optimizer changes; all tensors have the parameter's shape.
struct OptimizedParameter {
  at::Tensor parameter, gradient;
  std::vector<at::Tensor> state;  ///< as state_names says
};

/// Runs the update once on parameters of the same dtypes and numbers of dimensions, of one element
/// each, so that what it does not take is found out before a step depends on it.
/// Errors: UsageArgument, naming the dtype.
void try_optimizer(const Optimizer& optimizer, const std::vector<OptimizedParameter>& parameters);

/// One update. `step` counts from 1; `gradient` is what the update applies (averaged, clipped).
void apply(const Optimizer& optimizer,
           double learning_rate,
           std::int64_t step,
           std::vector<OptimizedParameter>& parameters);

template <class V>
decltype(auto) visit_fields(AdamW& m, V&& v) {
  return v(m.lr, m.beta1, m.beta2, m.eps, m.weight_decay);
}
template <class V>
decltype(auto) visit_fields(Sgd& m, V&& v) {
  return v(m.lr, m.momentum, m.weight_decay);
}

}  // namespace stagecraft
