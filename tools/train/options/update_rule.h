/// update_rule makes the rule of an update from the options of `train`: optimizer, groups of
/// parameters, rates.
///
/// docs/train-command.md has the defaults of the command that differ from LibTorch's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

#include "stagecraft/actors/executor/optimizer/learning_rate.h"
#include "stagecraft/actors/executor/optimizer/optimizer.h"
#include "stagecraft/actors/executor/optimizer/parameter_groups.h"
#include "stagecraft/actors/trainer/validation.h"
#include "stagecraft/tools/train/options/options.h"

namespace stagecraft::tools {

/// Makes the optimizer. Errors: UsageArgument for settings that contradict each other.
[[nodiscard]] Optimizer make_optimizer(const OptimizerOptions& options);

/// Returns the groups of --freeze, --freeze-for and --no-decay, in this order.
[[nodiscard]] std::vector<ParameterGroup> make_groups(const OptimizerOptions& options);

[[nodiscard]] DecayOn make_decay_on(const OptimizerOptions& options);

/// Returns how many tensors the optimizer and --average keep for each trained parameter, beside its
/// master.
[[nodiscard]] std::int64_t kept_tensors(const OptimizerOptions& options);

/// Returns the type of these tensors for parameters of this type: that of their masters, if they
/// have some.
[[nodiscard]] c10::ScalarType kept_type(const OptimizerOptions& options, c10::ScalarType type);

/// Returns the factor of the rate in the step that begins with this batch, from 0, of data of
/// `batches`. Requires: --lr-schedule epoch.
[[nodiscard]] double epoch_factor(const OptimizerOptions& options,
                                  std::int64_t batch,
                                  std::int64_t batches);

/// Returns when rates fall by --lr-schedule plateau; nothing for the other kinds.
[[nodiscard]] std::optional<Plateau> make_plateau(const OptimizerOptions& options);

/// Returns the steps in which the rate falls at the end of `steps` steps; 0 for all kinds but Wsd.
[[nodiscard]] std::int64_t decay_steps(const OptimizerOptions& options, std::int64_t steps);

/// Returns, as a sentence, why warm-up and fall of a rate do not fit into `steps` steps, by the
/// options that were given; empty if they do. Requires: the warm-up fits.
[[nodiscard]] std::string rate_misfit(const OptimizerOptions& options, std::int64_t steps);

/// Makes the rate. `steps`: of the whole training, at whose end a falling rate is 0.
[[nodiscard]] LearningRate make_learning_rate(const OptimizerOptions& options, std::int64_t steps);

}  // namespace stagecraft::tools
