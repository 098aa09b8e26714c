/// LeftCopies holds the copies of states that the ranks of a process have left there, as their
/// driver is gone. Ranks of the next driver of the same run take them, so that it can go on where
/// that one was.
///
/// A worker process that outlives its drivers has one; all its ranks share it. Any thread may use
/// it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "stagecraft/actors/executor/mirror/mirror_keeper.h"

namespace stagecraft {

class LeftCopies {
 public:
  struct OfRank {
    MirrorKeeper copies;
    /// By the number of updates after which they hold: what only the driver knew of a state
    /// (StepOrder::facts).
    std::map<std::int64_t, std::string> facts;
    std::string layout;  ///< of the packed copies: names, types and shapes
  };

  /// From now on, ranks that end leave their copies. Those that no rank has taken stay.
  void expect() {
    const std::scoped_lock lock(mutex_);
    is_expecting_ = true;
  }
  /// Ranks that begin now may take what is here. Those that end keep nothing.
  void hand_on() {
    const std::scoped_lock lock(mutex_);
    is_expecting_ = false;
  }

  /// Leaves a rank's copies, if they are expected. `run`: the name of the run, and of what its
  /// ranks have.
  void leave(const std::string& run, Rank rank, OfRank left) {
    const std::scoped_lock lock(mutex_);
    if (is_expecting_) {
      left_.insert_or_assign({run, rank}, std::move(left));
    }
  }

  /// Puts back what a rank has taken, and its trainer has not gone on from.
  void put_back(const std::string& run, Rank rank, OfRank left) {
    const std::scoped_lock lock(mutex_);
    left_.insert_or_assign({run, rank}, std::move(left));
  }

  [[nodiscard]] bool is_empty() {
    const std::scoped_lock lock(mutex_);
    return left_.empty();
  }

  /// Drops what is of other runs.
  void keep_only(const std::string& run) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(left_, [&](const auto& one) { return one.first.first != run; });
  }

  /// Drops what is here: the run goes on from another state.
  void drop() {
    const std::scoped_lock lock(mutex_);
    left_.clear();
  }

  [[nodiscard]] std::optional<OfRank> take(const std::string& run, Rank rank) {
    const std::scoped_lock lock(mutex_);
    auto found = left_.extract({run, rank});
    return found.empty() ? std::nullopt : std::optional(std::move(found.mapped()));
  }

 private:
  std::mutex mutex_;
  bool is_expecting_ = false;
  std::map<std::pair<std::string, Rank>, OfRank> left_;
};

}  // namespace stagecraft
