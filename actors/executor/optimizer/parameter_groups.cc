#include "stagecraft/actors/executor/optimizer/parameter_groups.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"

namespace stagecraft {
namespace {

// Far above real use: bounds the cost of looking up names.
constexpr std::size_t kMostGroups = 1000;
constexpr std::size_t kLongestPattern = 1000;  // bytes

[[noreturn]] void refuse_groups(const std::string& what) {
  throw Error(Errc::UsageArgument, what);
}

void require_from_zero(const ParameterGroup& group,
                       std::string_view setting,
                       const std::optional<double>& value) {
  if (value && (!std::isfinite(*value) || *value < 0.0)) {
    refuse_groups(fmt::format("{} of the parameter group \"{}\" is a number from 0 on, not {}",
                              setting,
                              group.match,
                              *value));
  }
}

const ParameterGroup* group_of(const std::vector<ParameterGroup>& groups, std::string_view name) {
  const auto found =
      std::ranges::find_if(groups, [&](const auto& group) { return matches(group.match, name); });
  return found == groups.end() ? nullptr : &*found;
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0;
  std::size_t star = std::string_view::npos;  // the last star, and the end of its match so far
  std::size_t behind = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      behind = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++behind;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

ParameterRule rule_of(const std::vector<ParameterGroup>& groups,
                      DecayOn decay_on,
                      const Optimizer& optimizer,
                      std::string_view name,
                      std::int64_t dimensions) {
  ParameterRule rule{.lr = std::nullopt, .weight_decay = base_weight_decay(optimizer)};
  if (const ParameterGroup* group = group_of(groups, name)) {
    rule.lr = group->lr;
    rule.lr_scale = group->lr_scale.value_or(1.0);
    rule.weight_decay = group->weight_decay.value_or(rule.weight_decay);
    rule.frozen = group->frozen;
    rule.group = static_cast<std::size_t>(group - groups.data());
  }
  if (decay_on == DecayOn::Matrices && dimensions < 2) {
    rule.weight_decay = 0.0;
  }
  return rule;
}

double rate_of(const ParameterRule& rule, double learning_rate, double base) {
  return rule.lr ? *rule.lr * (learning_rate / base) : learning_rate * rule.lr_scale;
}

void check_groups(const std::vector<ParameterGroup>& groups, const Optimizer& optimizer) {
  if (groups.size() > kMostGroups) {
    refuse_groups(
        fmt::format("there are at most {} parameter groups, not {}: join some by patterns",
                    kMostGroups,
                    groups.size()));
  }
  for (const ParameterGroup& group : groups) {
    if (group.match.empty() || group.match.size() > kLongestPattern) {
      refuse_groups(
          fmt::format("a parameter group's match is a pattern of 1 to {} characters, not of {}: "
                      "\"*\" matches every name",
                      kLongestPattern,
                      group.match.size()));
    }
    require_from_zero(group, "lr", group.lr);
    require_from_zero(group, "lr_scale", group.lr_scale);
    require_from_zero(group, "weight_decay", group.weight_decay);
    if (group.lr && group.lr_scale) {
      refuse_groups(fmt::format(
          "the parameter group \"{}\" has lr and lr_scale: leave one of them out", group.match));
    }
    if (group.lr && base_learning_rate(optimizer) <= 0.0) {
      refuse_groups(
          fmt::format("the parameter group \"{}\" has an lr of its own, which changes in "
                      "proportion to the optimizer's lr, and that is {}: give the optimizer one "
                      "above 0, or freeze the parameters of the group",
                      group.match,
                      base_learning_rate(optimizer)));
    }
    if (group.frozen_for < 0) {
      refuse_groups(
          fmt::format("frozen_for of the parameter group \"{}\" is a number of updates "
                      "from 0 on, not {}",
                      group.match,
                      group.frozen_for));
    }
    if (group.frozen && group.frozen_for > 0) {
      refuse_groups(
          fmt::format("the parameter group \"{}\" has frozen and frozen_for: leave one of them out",
                      group.match));
    }
    if (group.frozen && (group.lr || group.lr_scale || group.weight_decay)) {
      refuse_groups(
          fmt::format("the parameter group \"{}\" is frozen and has a rate or a decay: leave "
                      "one of them out",
                      group.match));
    }
  }
}

void check_groups_match(const std::vector<ParameterGroup>& groups,
                        const std::vector<std::string>& parameters) {
  const auto is_frozen = [&](const std::string& name) {
    const ParameterGroup* const group = group_of(groups, name);
    return group != nullptr && (group->frozen || group->frozen_for > 0);
  };
  if (!parameters.empty() && std::ranges::all_of(parameters, is_frozen)) {
    refuse_groups(
        "the groups freeze every parameter, so a step would change nothing: let one train from the "
        "beginning");
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::vector<ParameterGroup> until(groups.begin(),
                                            groups.begin() + static_cast<std::ptrdiff_t>(g) + 1);
    const std::string& pattern = groups[g].match;
    bool matched = false, has = false;
    for (const std::string& name : parameters) {
      matched = matched || matches(pattern, name);
      has = has || group_of(until, name) == &until.back();
    }
    if (has) {
      continue;
    }
    if (matched) {
      refuse_groups(
          fmt::format("every parameter that \"{}\" matches belongs to an earlier group: put "
                      "this group before it, or leave it out",
                      pattern));
    }
    std::string letters = pattern;  // the written part of the pattern
    std::erase_if(letters, [](char c) { return c == '*' || c == '?'; });
    constexpr std::size_t kTold = 4;
    const std::vector<std::string> some(
        parameters.begin(),
        parameters.begin() + static_cast<std::ptrdiff_t>(std::min(kTold, parameters.size())));
    refuse_groups(fmt::format("no parameter matches \"{}\": {}the {} parameters are {}{}",
                              pattern,
                              did_you_mean(letters, parameters),
                              parameters.size(),
                              fmt::join(some, ", "),
                              parameters.size() > kTold ? ", ..." : ""));
  }
}

}  // namespace stagecraft
