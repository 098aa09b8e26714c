#include "stagecraft/tools/train/options/update_rule.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"
#include "stagecraft/base/check.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/compiler/libtorch/half_type.h"
#include "stagecraft/tools/train/options/optimizer_defaults.h"

namespace stagecraft::tools {
namespace {

LearningRate::Kind kind_of(RateKind kind) {
  switch (kind) {
    case RateKind::Constant:
    case RateKind::Plateau:  // factors multiply it
    case RateKind::Epoch:
      return LearningRate::Kind::Constant;
    case RateKind::Cosine:
      return LearningRate::Kind::Cosine;
    case RateKind::Linear:
      return LearningRate::Kind::Linear;
    case RateKind::Wsd:
      return LearningRate::Kind::Wsd;
  }
  return LearningRate::Kind::Constant;
}

}  // namespace

Optimizer make_optimizer(const OptimizerOptions& options) {
  Optimizer optimizer = optimizer_named(options.name).value();
  bool known = true;
  for (const OptimizerSetting& setting : settings_of(optimizer)) {
    const double value =
        setting.name == "lr" ? options.rate : default_setting(options.name, setting.name);
    known = set_setting(optimizer, setting.name, value) && known;
  }
  for (const auto& [name, value] : options.settings) {
    known = set_setting(optimizer, name, value) && known;
  }
  SC_CHECK(known, "the settings are those of the optimizer");
  check_optimizer(optimizer);
  return optimizer;
}

std::vector<ParameterGroup> make_groups(const OptimizerOptions& options) {
  std::vector<ParameterGroup> groups;
  for (const std::string& pattern : options.freeze) {
    groups.push_back({.match = pattern, .frozen = true});
  }
  for (const auto& [pattern, steps] : options.freeze_for) {
    groups.push_back({.match = pattern, .frozen_for = steps});
  }
  for (const std::string& pattern : options.no_decay) {
    groups.push_back({.match = pattern, .weight_decay = 0.0});
  }
  return groups;
}

DecayOn make_decay_on(const OptimizerOptions& options) {
  return options.decay_on == DecayKind::All ? DecayOn::All : DecayOn::Matrices;
}

std::int64_t kept_tensors(const OptimizerOptions& options) {
  return std::ssize(state_names(make_optimizer(options))) + (options.average ? 1 : 0);
}

c10::ScalarType kept_type(const OptimizerOptions& options, c10::ScalarType type) {
  return options.master_weights && is_half_type(type) ? c10::ScalarType::Float : type;
}

double epoch_factor(const OptimizerOptions& options, std::int64_t batch, std::int64_t batches) {
  const std::int64_t falls = batch / batches / options.lr_epochs;
  return std::pow(options.lr_factor.value_or(Plateau().factor), static_cast<double>(falls));
}

std::optional<Plateau> make_plateau(const OptimizerOptions& options) {
  if (options.rate_kind != RateKind::Plateau) {
    return std::nullopt;
  }
  Plateau plateau;
  plateau.factor = options.lr_factor.value_or(plateau.factor);
  plateau.patience = options.lr_patience.value_or(plateau.patience);
  return plateau;
}

std::int64_t decay_steps(const OptimizerOptions& options, std::int64_t steps) {
  if (options.rate_kind != RateKind::Wsd) {
    return 0;
  }
  return options.decay_steps.value_or(
      std::max<std::int64_t>(std::min(steps / 10, steps - options.warmup), 1));
}

std::string rate_misfit(const OptimizerOptions& options, std::int64_t steps) {
  const std::int64_t decay = decay_steps(options, steps);
  if (decay <= steps - options.warmup) {
    return "";
  }
  if (!options.decay_steps) {
    return fmt::format(
        "--warmup expects at most {} of {} with --lr-schedule wsd, found {}: "
        "the rate falls in the last",
        steps - 1,
        count_text(steps, "step"),
        options.warmup);
  }
  return options.warmup == 0
             ? fmt::format(
                   "--decay-steps expects at most {}, found {}", count_text(steps, "step"), decay)
             : fmt::format("--warmup and --decay-steps expect at most {} together, found {} and {}",
                           count_text(steps, "step"),
                           options.warmup,
                           decay);
}

LearningRate make_learning_rate(const OptimizerOptions& options, std::int64_t steps) {
  return {.kind = kind_of(options.rate_kind),
          .warmup = options.warmup,
          .total_steps = steps,
          .decay = decay_steps(options, steps)};
}

}  // namespace stagecraft::tools
