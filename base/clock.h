/// Clock tells the time and waits for it. Code with deadlines uses a Clock instead of the system's,
/// so that a test can let time pass at once (manual_clock.h).
///
/// The program makes one and gives it to drivers, fleets and wait boards. It is the steady clock of
/// the system unless a test gives another. Any thread may use it. Times of different clocks cannot
/// be compared.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

namespace stagecraft {

class Clock {
 public:
  using Time = std::chrono::steady_clock::time_point;

  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  /// Returns the steady clock of the system.
  [[nodiscard]] static const std::shared_ptr<const Clock>& steady();

  [[nodiscard]] virtual Time now() const = 0;

  /// Waits until `changed` is notified or the time has come. May return earlier without a reason.
  /// Requires: `lock` holds the mutex of `changed`.
  virtual void wait_until(std::condition_variable& changed,
                          std::unique_lock<std::mutex>& lock,
                          Time when) const = 0;

  /// Waits until the condition is true, or the time has come. Returns whether it is true.
  template <class Condition>
  bool wait_until(std::condition_variable& changed,
                  std::unique_lock<std::mutex>& lock,
                  Time when,
                  Condition condition) const {
    while (!condition()) {
      if (now() >= when) {
        return false;
      }
      wait_until(changed, lock, when);
    }
    return true;
  }
};

}  // namespace stagecraft
