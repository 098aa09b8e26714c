/// GroupUpdates numbers the updates of each parameter group, which may be frozen in some of them
/// (PG-3).
///
/// The ledger of a trainer, or a reference, counts. A trainer's driver sends the numbers of an
/// update with its order (StepOrder), so ranks use neither frozen_for nor Trainer::set_frozen.
/// GU-1: what Trainer::set_frozen says about a group wins over its frozen_for. Without a word the
///       group is frozen in the run's first frozen_for updates.
/// GU-2: a group's number counts the updates in which it trained, so its optimizer goes on where it
///       was when the group was frozen. A checkpoint keeps the updates without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/actors/executor/optimizer/parameter_groups.h"

namespace stagecraft {

/// UpdateNumbers numbers one update for each parameter.
struct UpdateNumbers {
  std::int64_t run = 1;              ///< for parameters of no group; from 1
  std::vector<std::int64_t> groups;  ///< by group; 0: it is frozen now. Empty: `run` for all

  /// Returns the number for a parameter of this group; 0 if it is frozen.
  [[nodiscard]] std::int64_t of(const std::optional<std::size_t>& group) const {
    return group && !groups.empty() ? groups[*group] : run;
  }
};

/// GroupFreezes says for each group whether it is frozen; none: as the options say. Empty: as they
/// say for all.
using GroupFreezes = std::vector<std::optional<bool>>;

/// FrozenUpdates has the number of updates so far in which a group was frozen, by its `match`. A
/// group that it lacks was never frozen.
using FrozenUpdates = std::map<std::string, std::int64_t>;

/// Returns the number of the group with this pattern, to freeze it or to let it train.
/// Errors: UsageArgument, with near names, if there is none, and for a group that shall train but
/// has no optimizer state (ParameterGroup::frozen).
[[nodiscard]] std::size_t group_to_freeze(const std::vector<ParameterGroup>& groups,
                                          std::string_view match,
                                          const std::optional<bool>& frozen);

/// Returns whether a run of `updates` updates can have these.
[[nodiscard]] bool is_possible(const FrozenUpdates& frozen, std::int64_t updates);

class GroupUpdates {
 public:
  /// Has no groups.
  GroupUpdates() = default;
  /// Requires: check_groups_match accepts both.
  GroupUpdates(std::vector<ParameterGroup> groups, const std::vector<std::string>& parameters);

  /// Begins an update, which follows `made` others, and returns the numbers of the groups in it.
  /// Errors: UsageArgument if all parameters are frozen in it.
  [[nodiscard]] std::vector<std::int64_t> begin(std::int64_t made, const GroupFreezes& set);
  /// Records that the update that was begun last is made, after `made` others.
  void end(std::int64_t made);

  /// Returns the groups that were frozen in some of the run's first `made` updates.
  [[nodiscard]] FrozenUpdates frozen(std::int64_t made) const;
  /// Begins a run that continues after `made` updates. `frozen`: of these; none: as the options
  /// say.
  void replace(std::int64_t made, const std::optional<FrozenUpdates>& frozen);
  /// Forgets the updates after the first `made`. Errors: Internal if the groups changed about a
  /// thousand times since.
  void go_back(std::int64_t made);

 private:
  /// The updates without each group before one, and the groups that are frozen from it on.
  struct Since {
    std::vector<std::int64_t> without;
    std::vector<bool> frozen;
  };

  using Changes = std::map<std::int64_t, Since>;  // by the updates made before

  [[nodiscard]] std::vector<std::int64_t> without(std::int64_t made) const;
  /// Requires: there are groups.
  [[nodiscard]] Changes::const_iterator last_change(std::int64_t made) const;
  [[nodiscard]] bool is_frozen(std::size_t group,
                               std::int64_t number,
                               const GroupFreezes& set) const;

  std::vector<ParameterGroup> groups_;
  bool has_others_ = true;   // parameters of no group
  std::vector<bool> begun_;  // the groups that are frozen in the update begun last
  Changes since_;            // not empty if there are groups
};

}  // namespace stagecraft
