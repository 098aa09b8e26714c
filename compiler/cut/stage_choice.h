/// StageChoice finds a stage for every group of operators such that values flow only from a stage
/// to itself and to those after it.
///
/// cut_like uses it. Each group keeps the stages for which each of its neighbors still has a
/// fitting stage. A decision for one group narrows the others. If the stages form a row, every
/// stage that is still open is part of a solution. If some stages are side by side, a decision may
/// fail and is then undone.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace stagecraft {

/// StageSet holds one flag per stage.
using StageSet = std::vector<bool>;

class StageChoice {
 public:
  /// `leads_to[a][b]`: values may flow from stage a to stage b. They may always flow from a stage
  /// to itself.
  StageChoice(std::vector<StageSet> leads_to, std::size_t groups);

  // Before narrow():
  /// Limits the group to the stages of this set.
  void restrict(std::size_t group, const StageSet& to);
  /// Records that values flow from group `from` to group `to`.
  void feed(std::size_t from, std::size_t to);

  /// Returns the group that no stage fits, or the number of groups if all have one.
  [[nodiscard]] std::size_t narrow();

  /// Decides on a stage for the group, unless that leaves some group without one. Returns whether
  /// it did.
  bool decide(std::size_t group, int stage);

  [[nodiscard]] bool is_open(std::size_t group, int stage) const {
    return open_[group][static_cast<std::size_t>(stage)];
  }
  /// Returns the last open stage of a group. Once the group is decided, this is its stage.
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
