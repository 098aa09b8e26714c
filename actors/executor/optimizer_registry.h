/// What is known of each optimizer, by one row per optimizer: its name, its settings and their
/// ranges, its state tensors, its arithmetic.
///
/// Used by buckets, which keep the state and run the update, by whoever checks settings or names an
/// optimizer in a checkpoint, and by command lines.
/// OR-1: an update looks at one parameter at a time, so neither the cut nor the company of others
///       changes a bit of it. The arithmetic is LibTorch's: its fused kernels where there are such
///       for CPUs, which round differently from its classes in the last digits; RMSprop by the
///       operators of its class, bit by bit.
/// OR-2: what gradients are divided by belongs to the update's own pass. The bits are those of a
///       pass of its own (`div_`), for every optimizer and type; the quotient is what the optimizer
///       sees, and stays in the gradient.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/optimizer.h"
#include "stagecraft/actors/executor/parameter_groups.h"

namespace stagecraft {

/// "adamw", "sgd", ...: what an optimizer is called in checkpoints and on command lines.
[[nodiscard]] std::string_view optimizer_name(const Optimizer& optimizer);

/// All but custom ones, in the registry's order.
[[nodiscard]] std::vector<std::string> optimizer_names();

/// The optimizer of that name with its defaults; nothing for an unknown one.
[[nodiscard]] std::optional<Optimizer> optimizer_named(std::string_view name);

/// A setting by its name in the record: "beta1". Switches are 0 or 1.
struct OptimizerSetting {
  std::string_view name;
  bool is_switch = false;
  double value = 0.0;
};
[[nodiscard]] std::vector<OptimizerSetting> settings_of(const Optimizer& optimizer);

/// Sets one. Returns false where the optimizer has no such setting. Does not check the value.
[[nodiscard]] bool set_setting(Optimizer& optimizer, std::string_view name, double value);

/// Errors: UsageArgument for settings that cannot train, naming the setting: not finite, out of its
///         range, or at odds with another.
void check_optimizer(const Optimizer& optimizer);

/// Names of the state tensors an optimizer keeps per parameter, in the order in which they are
/// stored.
[[nodiscard]] std::vector<std::string> state_names(const Optimizer& optimizer);

/// What the elements of all of them are before the first step.
[[nodiscard]] double initial_state_value(const Optimizer& optimizer);

/// One parameter with everything the optimizer changes; all tensors have the parameter's shape.
struct OptimizedParameter {
  at::Tensor parameter, gradient;
  std::vector<at::Tensor> state;  ///< as state_names says
  ParameterRule rule;             ///< not frozen
  std::string name;
};

/// Runs the update once on parameters of the same dtypes and numbers of dimensions, of one element
/// each, so that what it does not take is found out before a step depends on it. A custom
/// optimizer's callable is not tried.
/// Errors: UsageArgument, naming the dtype.
void try_optimizer(const Optimizer& optimizer, const std::vector<OptimizedParameter>& parameters);

/// One update. `learning_rate` is the step's. `step` counts from 1. Gradients are divided by
/// `divisor` first and stay so (OR-2): that averages and clips them.
void apply(const Optimizer& optimizer,
           double learning_rate,
           std::int64_t step,
           std::vector<OptimizedParameter>& parameters,
           double divisor = 1.0);

}  // namespace stagecraft
