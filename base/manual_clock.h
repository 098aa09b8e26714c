/// ManualClock stands still until its test advances it. A wait by this clock ends only if its
/// condition is notified, or by advance().
///
/// Any thread may use it. Its mutex guards the time and the list of waits, because threads other
/// than the test's wait.
/// MA-1: advance() wakes every wait whose time has come, even one that is about to begin: that wait
///       holds its own lock until it waits, and advance() takes the lock before it notifies.
#pragma once

#include <list>

#include "stagecraft/base/clock.h"

namespace stagecraft {

class ManualClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override;
  bool wait_until(std::condition_variable& changed,
                  std::unique_lock<std::mutex>& lock,
                  Time when,
                  const std::function<bool()>& condition) const override;

  /// Lets time pass. Requires: the caller holds no lock that a wait uses.
  void advance(Time::duration span);

  /// Returns how many waits are in progress, so that a test can wait for one to begin.
  [[nodiscard]] std::size_t waits() const;

 private:
  struct Wait {
    std::condition_variable* changed;
    std::mutex* mutex;
    bool is_woken = false;  ///< advance() uses the pointers now, so the entry must stay
  };

  /// Ends when it is notified or woken.
  void wait_once(std::condition_variable& changed,
                 std::unique_lock<std::mutex>& lock,
                 Time when) const;

  mutable std::mutex mutex_;
  mutable std::condition_variable released_;  ///< notified when a wait is no longer being woken
  mutable std::list<Wait> waits_;
  Time now_{std::chrono::hours(1)};  ///< not 0, so that a test may look back
};

}  // namespace stagecraft
