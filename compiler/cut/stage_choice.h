/// StageChoice: finds a stage for every group of operators, so that values flow only from a stage
/// to itself and to those that come behind it.
///
/// Used by cut_like. Each group keeps the stages for which all its neighbors keep a fitting one;
/// whoever decides for a group narrows the others by it. Where the stages are in a row, every
/// stage that is still open is part of a solution; where some are side by side, a decision may fail
/// and is then undone.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace stagecraft {

/// By stage.
using StageSet = std::vector<bool>;

class StageChoice {
 public:
  /// `leads_to[a][b]`: values may flow from stage a to stage b; from a stage to itself always.
  StageChoice(std::vector<StageSet> leads_to, std::size_t groups);

  // Before narrow():
  /// Leaves the group only stages of this set.
  void restrict(std::size_t group, const StageSet& to);
  /// Values flow from one group to the other.
  void feed(std::size_t from, std::size_t to);

  /// Returns the group that no stage fits, or the number of groups.
  [[nodiscard]] std::size_t narrow();

  /// Decides for a stage, unless that leaves some group without one. Returns whether it did.
  bool decide(std::size_t group, int stage);

  [[nodiscard]] bool is_open(std::size_t group, int stage) const {
    return open_[group][static_cast<std::size_t>(stage)];
  }
  /// The last open stage of a group: the one, once it is decided.
  [[nodiscard]] int last_open(std::size_t group) const;

 private:
  void remove(std::size_t group, std::size_t stage);
  bool fit(std::size_t group, std::size_t neighbor, bool neighbor_feeds);
  std::size_t settle(std::vector<std::size_t> changed);

  std::vector<StageSet> leads_to_;
  std::vector<StageSet> open_;
  std::vector<std::vector<std::size_t>> feeders_, readers_;
  std::vector<std::pair<std::size_t, std::size_t>> removed_;  ///< group and stage, to undo
};

}  // namespace stagecraft
