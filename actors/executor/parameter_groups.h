/// Parameter groups: which parameters are trained otherwise than the optimizer says, by their
/// names.
///
///   options.groups = {{.match = "encoder.*", .frozen = true},
///                     {.match = "*.bias", .weight_decay = 0.0},
///                     {.match = "head.*", .lr_scale = 10.0}};
///
/// Written in the options of a trainer or a reference, which check them against the whole model;
/// they travel to every rank, whose buckets look up each parameter's rule once.
/// PG-1: a parameter's rule follows from its name and its number of dimensions alone, so neither
///       the cut nor the number of stages that share it changes it.
/// PG-2: what is frozen is not changed, has no optimizer state, and counts neither in the norm of
///       the gradient nor in whether it is finite. Its gradient is computed all the same, so no
///       other changes by a bit; what never trains is cheaper with requires_grad off at compile().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/actors/executor/optimizer.h"

namespace stagecraft {

/// Which parameters weight decay is for: the optimizer's, and that of groups.
enum class DecayOn : std::uint8_t {
  All,       ///< as in LibTorch
  Matrices,  ///< of two or more dimensions: no biases, no scales of norms
};

/// The first group whose pattern a name matches has it; a parameter of none is as the optimizer
/// says.
struct ParameterGroup {
  std::string match;  ///< of the whole name: `*` any characters, dots too; `?` any one
  /// In place of the optimizer's lr; it follows the learning rate over the steps as that does: in a
  /// step of rate r it is lr * (r / the optimizer's lr).
  std::optional<double> lr;
  std::optional<double> lr_scale;      ///< instead: what each step's rate is multiplied with
  std::optional<double> weight_decay;  ///< in place of the optimizer's
  bool frozen = false;                 ///< PG-2
};

/// How one parameter is trained.
struct ParameterRule {
  std::optional<double> lr;
  double lr_scale = 1.0;
  double weight_decay = 0.0;
  bool frozen = false;
};

/// The rule of a parameter of so many dimensions.
[[nodiscard]] ParameterRule rule_of(const std::vector<ParameterGroup>& groups,
                                    DecayOn decay_on,
                                    const Optimizer& optimizer,
                                    std::string_view name,
                                    std::int64_t dimensions);

/// Its rate in a step of this rate. `base`: the optimizer's lr.
[[nodiscard]] double rate_of(const ParameterRule& rule, double learning_rate, double base);

/// Errors: UsageArgument for settings that cannot train, naming the group.
void check_groups(const std::vector<ParameterGroup>& groups, const Optimizer& optimizer);

/// Errors: UsageArgument, with near names, for a group that has none of these parameters: because
///         its pattern matches none, or because earlier groups have all that it matches.
void check_groups_match(const std::vector<ParameterGroup>& groups,
                        const std::vector<std::string>& parameters);

/// Whether the pattern stands for the whole name. Cost: at most the product of their lengths.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view name);

template <class V>
decltype(auto) visit_fields(ParameterGroup& m, V&& v) {
  return v(m.match, m.lr, m.lr_scale, m.weight_decay, m.frozen);
}

}  // namespace stagecraft
