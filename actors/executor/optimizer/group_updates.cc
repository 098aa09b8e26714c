#include "stagecraft/actors/executor/optimizer/group_updates.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"

namespace stagecraft {
namespace {

/// A run may freeze other groups in every update. Recovery goes back by fewer updates than this.
constexpr std::size_t kMostChanges = 1024;

}  // namespace

std::size_t group_to_freeze(const std::vector<ParameterGroup>& groups,
                            std::string_view match,
                            const std::optional<bool>& frozen) {
  const auto found = std::ranges::find(groups, match, &ParameterGroup::match);
  if (found == groups.end()) {
    std::vector<std::string> known;
    for (const ParameterGroup& group : groups) {
      known.push_back(group.match);
    }
    throw Error(Errc::UsageArgument,
                fmt::format("no parameter group has the match \"{}\": {}name the match of one of "
                            "the options' groups",
                            match,
                            did_you_mean(match, known)));
  }
  if (found->frozen && frozen == false) {
    throw Error(Errc::UsageArgument,
                fmt::format("the parameter group \"{}\" is frozen throughout and has no optimizer "
                            "state: leave `frozen` out of the group, and freeze it by set_frozen "
                            "until it is to train",
                            match));
  }
  return static_cast<std::size_t>(found - groups.begin());
}

bool is_possible(const FrozenUpdates& frozen, std::int64_t updates) {
  return std::ranges::all_of(
      frozen, [&](const auto& of) { return of.second >= 0 && of.second <= updates; });
}

GroupUpdates::GroupUpdates(std::vector<ParameterGroup> groups,
                           const std::vector<std::string>& parameters)
    : groups_(std::move(groups)),
      has_others_(
          parameters.empty() || std::ranges::any_of(parameters, [&](const std::string& name) {
            return std::ranges::none_of(
                groups_, [&](const ParameterGroup& group) { return matches(group.match, name); });
          })) {
  replace(0, FrozenUpdates());
}

bool GroupUpdates::is_frozen(std::size_t group,
                             std::int64_t number,
                             const GroupFreezes& set) const {
  const ParameterGroup& of = groups_[group];
  const std::optional<bool> said = group < set.size() ? set[group] : std::nullopt;
  return of.frozen || said.value_or(number <= of.frozen_for);  // keeps GU-1
}

std::vector<std::int64_t> GroupUpdates::begin(std::int64_t made, const GroupFreezes& set) {
  std::vector<std::int64_t> numbers = without(made);
  begun_.assign(groups_.size(), false);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    begun_[g] = is_frozen(g, made + 1, set);
    numbers[g] = begun_[g] ? 0 : made + 1 - numbers[g];  // keeps GU-2
  }
  if (!has_others_ && std::ranges::find(begun_, false) == begun_.end()) {
    throw Error(Errc::UsageArgument,
                "the groups freeze every parameter, so a step would change nothing: let one train "
                "(set_frozen)");
  }
  return numbers;
}

void GroupUpdates::end(std::int64_t made) {
  if (since_.empty()) {
    return;
  }
  if (last_change(made)->second.frozen != begun_) {
    Since next{.without = without(made), .frozen = begun_};
    since_[made] = std::move(next);
    if (since_.size() > kMostChanges) {
      since_.erase(since_.begin());
    }
  }
}

GroupUpdates::Changes::const_iterator GroupUpdates::last_change(std::int64_t made) const {
  const auto next = since_.upper_bound(made);
  SC_CHECK(next != since_.begin(), "the groups of updates so far back are known no more");
  return std::prev(next);
}

std::vector<std::int64_t> GroupUpdates::without(std::int64_t made) const {
  if (since_.empty()) {
    return {};
  }
  const auto& [begin, since] = *last_change(made);
  std::vector<std::int64_t> counts = since.without;
  for (std::size_t g = 0; g < counts.size(); ++g) {
    counts[g] += since.frozen[g] ? made - begin : 0;
  }
  return counts;
}

FrozenUpdates GroupUpdates::frozen(std::int64_t made) const {
  FrozenUpdates all;
  const std::vector<std::int64_t> counts = without(made);
  for (std::size_t g = 0; g < counts.size(); ++g) {
    if (counts[g] > 0) {
      all[groups_[g].match] = counts[g];
    }
  }
  return all;
}

void GroupUpdates::replace(std::int64_t made, const std::optional<FrozenUpdates>& frozen) {
  since_.clear();
  begun_.assign(groups_.size(), false);
  if (groups_.empty()) {
    return;
  }
  Since& now = since_[made];
  now.frozen.assign(groups_.size(), false);
  for (const ParameterGroup& group : groups_) {
    if (!frozen) {
      now.without.push_back(group.frozen ? made : std::min(made, group.frozen_for));
      continue;
    }
    const auto found = frozen->find(group.match);
    now.without.push_back(found == frozen->end() ? 0 : found->second);
  }
}

void GroupUpdates::go_back(std::int64_t made) {
  if (since_.empty()) {
    return;
  }
  (void)last_change(made);
  since_.erase(since_.upper_bound(made), since_.end());
}

}  // namespace stagecraft
