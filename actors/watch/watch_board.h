/// WatchBoard is where a run and those who watch it meet: the run writes its state here and takes
/// wishes, watchers read copies and leave wishes.
///
/// Watch owns one. Thread: any; all go by the clock of the thread that makes it. A mutex guards
/// all. It is held for copies in memory alone, never while a socket is written.
/// VB-1: nobody who watches delays the run by more than such a copy.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "stagecraft/actors/watch/watched_state.h"
#include "stagecraft/base/clock.h"

namespace stagecraft {

/// WatchWishes is what watchers want of the run.
struct WatchWishes {
  bool checkpoint = false;
  bool stop = false;
  bool pause = false;
};

class WatchBoard {
 public:
  explicit WatchBoard(WatchedRun run);

  // The run's side.

  /// Tells the number of updates made before the first step.
  void begin_after(std::int64_t step);
  /// Between them runs a step, or a batch of one. Nobody waits for anybody beside them.
  void begin_step();
  void leave_step();
  /// `counted`: samples or tokens of the step. Bytes are counted if its timeline is there.
  void end_step(WatchedStep step, std::int64_t counted);
  void set_routes(std::vector<std::vector<Route>> routes);
  void set_places(const std::vector<std::string>& places);
  void set_waits(std::string waits);
  /// Adds to what the run has counted so far.
  void add_healing(const WatchedHealing& more);
  void add_checkpoint(std::int64_t step, const std::string& path);
  void add_message(const std::string& text);
  /// Takes no wishes from now on: the run would not follow them.
  void take_no_wishes();
  /// Says how the run ended. Only the first call counts.
  void end(const std::string& how);
  /// Returns whether the step in progress takes longer than steps usually do.
  [[nodiscard]] bool is_late() const;
  /// Returns whether somebody follows, or has looked within the last kAttention.
  [[nodiscard]] bool is_looked_at() const;
  [[nodiscard]] WatchWishes wishes() const;
  /// Returns whether a checkpoint is wished for, once for each wish.
  [[nodiscard]] bool take_checkpoint_wish();
  /// If a pause is wished for, shows the run as paused and waits for another wish, at most `limit`.
  /// Returns whether it is still wished for.
  [[nodiscard]] bool wait_paused(std::chrono::milliseconds limit);

  // The watchers' side.

  /// Returns the state.
  [[nodiscard]] WatchedState state() const;
  /// Returns it to somebody who looks (is_looked_at).
  [[nodiscard]] WatchedState look();
  /// Waits `rest`, or less if the run ends, then until the state is newer than `seen`, which it
  /// replaces. Returns false if nothing has changed within `limit`.
  [[nodiscard]] bool wait_for_change(std::uint64_t& seen,
                                     std::chrono::milliseconds rest,
                                     std::chrono::milliseconds limit);

  /// Follower is somebody who is to see the end of the run; while one lives, it is looked at.
  class Follower {
   public:
    explicit Follower(WatchBoard& board);
    ~Follower();
    Follower(const Follower&) = delete;
    Follower& operator=(const Follower&) = delete;

   private:
    WatchBoard& board_;
  };
  /// Waits until no Follower lives and, if somebody has looked within the last kAttention, until
  /// the end of the run was looked at.
  void wait_for_followers(std::chrono::milliseconds limit);

  /// Changes the wishes as `change` does, unless it takes none any more.
  /// Returns false then.
  template <class Change>
  bool wish(Change&& change) {
    const std::lock_guard lock(mutex_);
    if (!takes_wishes_) {
      return false;
    }
    change(wishes_);
    tell_change();
    return true;
  }

  static constexpr std::chrono::seconds kAttention{3};
  static constexpr std::size_t kMostEvents = 200;

 private:
  [[nodiscard]] double seconds_of_step() const;
  void tell_change();
  void count_bytes(const MeasuredStep& timeline);

  const std::shared_ptr<const Clock> clock_ = Clock::current();
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t version_ = 1;
  WatchedState state_;  ///< without the curve
  WatchCurve curve_;
  WatchWishes wishes_;
  std::vector<std::vector<Route>> routes_;
  bool takes_wishes_ = true;
  int followers_ = 0;
  bool in_step_ = false;
  bool end_is_seen_ = false;
  Clock::Time step_begun_;
  Clock::Time looked_at_;  ///< long ago at first
};

}  // namespace stagecraft
