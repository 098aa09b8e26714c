/// ParameterGroup selects parameters, by name, that train differently from the optimizer's
/// settings.
///
///   options.groups = {{.match = "encoder.*", .frozen = true},
///                     {.match = "*.bias", .weight_decay = 0.0},
///                     {.match = "head.*", .lr_scale = 10.0}};
///
/// Groups are a part of the options of a trainer or a reference, which checks them against the
/// whole model. They travel to every rank, and a bucket looks up each parameter's rule once.
/// PG-1: a parameter's rule follows from its name and its number of dimensions alone, so neither
///       the cut nor the number of stages that share it changes it.
/// PG-2: a frozen parameter does not change and has no optimizer state. It counts neither in the
///       norm of the gradient nor in the test whether that is finite. Its gradient is still
///       computed, so no other gradient changes by a bit. A parameter that never trains costs less
///       if requires_grad is off at compile().
/// PG-3: a parameter that is frozen for some updates is so as PG-2 says, but has optimizer state
///       from the beginning, which stays as it is meanwhile, as does its average. Its optimizer
///       counts the updates in which it trains (group_updates.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/actors/executor/optimizer/optimizer.h"

namespace stagecraft {

/// DecayOn selects the parameters to which weight decay applies, that of the optimizer and that of
/// groups.
enum class DecayOn : std::uint8_t {
  All,       ///< as in LibTorch
  Matrices,  ///< of two or more dimensions: no biases, no scales of norms
};

/// A parameter belongs to the first group whose pattern matches its name. A parameter of no group
/// follows the optimizer's settings.
struct ParameterGroup {
  std::string match;  ///< for the whole name: `*` any characters, also dots; `?` any one
  /// Replaces the optimizer's lr, and follows the learning rate over the steps as that does: in a
  /// step of rate r it is lr * (r / the optimizer's lr).
  std::optional<double> lr;
  std::optional<double> lr_scale;      ///< instead: multiplies each step's rate
  std::optional<double> weight_decay;  ///< replaces the optimizer's
  bool frozen = false;                 ///< PG-2
  std::int64_t frozen_for = 0;         ///< instead: number of updates before the first (PG-3)
};

/// ParameterRule says how one parameter is trained.
struct ParameterRule {
  std::optional<double> lr;
  double lr_scale = 1.0;
  double weight_decay = 0.0;
  bool frozen = false;               ///< throughout
  std::optional<std::size_t> group;  ///< its number; none: it is of no group
};

/// Returns the rule of a parameter with this number of dimensions.
[[nodiscard]] ParameterRule rule_of(const std::vector<ParameterGroup>& groups,
                                    DecayOn decay_on,
                                    const Optimizer& optimizer,
                                    std::string_view name,
                                    std::int64_t dimensions);

/// Returns the parameter's rate in a step of this rate. `base`: the optimizer's lr.
[[nodiscard]] double rate_of(const ParameterRule& rule, double learning_rate, double base);

/// Checks the groups. Errors: UsageArgument for settings that cannot train, naming the group.
void check_groups(const std::vector<ParameterGroup>& groups, const Optimizer& optimizer);

/// Checks that every group has a parameter, and that some parameter trains.
/// Errors: UsageArgument, with near names, for a group that gets none of these parameters: its
/// pattern matches none, or earlier groups have all that it matches.
void check_groups_match(const std::vector<ParameterGroup>& groups,
                        const std::vector<std::string>& parameters);

/// Returns whether the pattern matches the whole name. Cost: at most the product of their lengths.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view name);

template <class V>
decltype(auto) visit_fields(ParameterGroup& m, V&& v) {
  return v(m.match, m.lr, m.lr_scale, m.weight_decay, m.frozen, m.frozen_for);
}

}  // namespace stagecraft
