/// ManualClock stands still until its test advances it. A wait by this clock ends only by what it
/// waits for, or by advance().
///
/// Any thread may use it. Its mutex guards the time and the list of waits, because waits are on
/// other threads than the test.
/// MA-1: advance() wakes every wait whose time has come, also one that is about to begin: such a
///       wait holds its own lock until it waits, and advance() takes that lock before it notifies.
#pragma once

#include <list>

#include "stagecraft/base/clock.h"

namespace stagecraft {

class ManualClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override;
  void wait_until(std::condition_variable& changed,
                  std::unique_lock<std::mutex>& lock,
                  Time when) const override;

  /// Lets time pass. Requires: the caller holds no lock with which somebody waits.
  void advance(Time::duration span);

  /// Returns how many waits are under way, so that a test can wait for one to begin.
  [[nodiscard]] std::size_t waits() const;

 private:
  struct Wait {
    std::condition_variable* changed;
    std::mutex* mutex;
    bool is_woken = false;  ///< advance() uses the two now: they must stay
  };

  mutable std::mutex mutex_;
  mutable std::condition_variable released_;  ///< a wait is no longer being woken
  mutable std::list<Wait> waits_;
  Time now_{std::chrono::hours(1)};  ///< not 0, so that a test may look back
};

}  // namespace stagecraft
