/// optimizer_registry has the functions for all rows of the table (optimizer_table.h) and for
/// CustomOptimizer.
///
/// Buckets, which keep the state and run the update, use it. So does code that checks settings or
/// names an optimizer in a checkpoint.
/// OR-1: an update reads one parameter at a time, so neither the cut nor other parameters change a
///       bit of it. The arithmetic is LibTorch's: its fused kernels for CPUs, if there are some,
///       which differ from its classes in the last digits; RMSprop uses the operators of its class,
///       bit by bit.
/// OR-2: the update divides gradients in its own pass. The bits equal those of a separate pass
///       (`div_`), for every optimizer and type. The optimizer sees the quotient, which stays in
///       the gradient.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/actors/executor/optimizer/group_updates.h"
#include "stagecraft/actors/executor/optimizer/optimizer.h"
#include "stagecraft/actors/executor/optimizer/update_pass.h"

namespace stagecraft {

/// Returns the optimizer's name in checkpoints and on command lines: "adamw", "sgd", ...
[[nodiscard]] std::string_view optimizer_name(const Optimizer& optimizer);

/// Returns the optimizer of that name with its defaults; nothing for an unknown name.
[[nodiscard]] std::optional<Optimizer> optimizer_named(std::string_view name);

/// OptimizerSetting is a setting by its name in the record: "beta1". Switches are 0 or 1.
struct OptimizerSetting {
  std::string_view name;
  double value = 0.0;
};
[[nodiscard]] std::vector<OptimizerSetting> settings_of(const Optimizer& optimizer);

/// Sets one setting. Returns false if the optimizer has no such setting. Does not check the value.
[[nodiscard]] bool set_setting(Optimizer& optimizer, std::string_view name, double value);

/// Checks the settings.
/// Errors: UsageArgument, naming the setting, for one that cannot train: not finite, out of its
/// range, or in conflict with another.
void check_optimizer(const Optimizer& optimizer);

/// Returns the names of the state tensors that an optimizer keeps per parameter, in storage order.
[[nodiscard]] std::vector<std::string> state_names(const Optimizer& optimizer);

/// Returns the value of all their elements before the first step.
[[nodiscard]] double initial_state_value(const Optimizer& optimizer);

/// Runs the update once on parameters of the same dtypes, those of masters if there are some, and
/// of the same numbers of dimensions, of one element each, so that a type that it does not take is
/// found before a step depends on it. Does not call a custom optimizer's callable.
/// Errors: UsageArgument, naming the dtype.
void try_optimizer(const Optimizer& optimizer, const std::vector<OptimizedParameter>& parameters);

/// Returns whether the state has the squares of gradients, so that one whose square its type cannot
/// hold would spoil it for good.
[[nodiscard]] bool keeps_squares(const Optimizer& optimizer);

/// Makes one update. `learning_rate` is the step's. Divides gradients by `divisor` first, which
/// averages and clips them; they stay divided (OR-2). Leaves parameters that are frozen in the
/// update as they are. Does not know masters (update_through_masters). Requires: float can hold
/// `divisor`.
void apply(const Optimizer& optimizer,
           double learning_rate,
           const UpdateNumbers& numbers,
           std::vector<OptimizedParameter>& parameters,
           double divisor = 1.0);

}  // namespace stagecraft
