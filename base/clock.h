/// Clock tells the time and waits for it. Code with deadlines uses a Clock instead of the system's,
/// so that a test can let time pass at once (manual_clock.h), and a simulation can run other work
/// while a thread waits, and choose when a thread runs.
///
/// Every thread has a current clock, the steady clock of the system unless a test or a simulation
/// sets another (ClockOfThread). Any thread may use a clock. Times of different clocks cannot be
/// compared.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

namespace stagecraft {

class Clock {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Thread is a thread that was started. Its destructor waits for the end of the work.
  class Thread {
   public:
    Thread() = default;
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;
    virtual ~Thread() = default;
  };

  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  /// Returns the steady clock of the system.
  [[nodiscard]] static const std::shared_ptr<const Clock>& steady();

  /// Returns this thread's clock.
  [[nodiscard]] static const std::shared_ptr<const Clock>& current();

  [[nodiscard]] virtual Time now() const = 0;

  /// Waits until the condition is true, or the time has come. Returns whether it is true.
  /// Requires: `lock` holds the mutex of `changed`, which is notified when the condition changes.
  virtual bool wait_until(std::condition_variable& changed,
                          std::unique_lock<std::mutex>& lock,
                          Time when,
                          const std::function<bool()>& condition) const = 0;

  /// Waits until the condition is true. Requires: likewise.
  void wait(std::condition_variable& changed,
            std::unique_lock<std::mutex>& lock,
            const std::function<bool()>& condition) const {
    (void)wait_until(changed, lock, Time::max(), condition);
  }

  /// Starts a thread for the work, which must not throw. The default starts a system thread, whose
  /// clock is the steady one. A simulation's thread takes turns with the others, and its clock is
  /// this one.
  [[nodiscard]] virtual std::unique_ptr<Thread> start(std::function<void()> work) const;
};

/// ClockOfThread makes a clock the current one of its thread while it exists.
class ClockOfThread {
 public:
  explicit ClockOfThread(std::shared_ptr<const Clock> clock);
  ClockOfThread(const ClockOfThread&) = delete;
  ClockOfThread& operator=(const ClockOfThread&) = delete;
  ~ClockOfThread();

 private:
  const std::shared_ptr<const Clock> clock_;
  const std::shared_ptr<const Clock>* const before_;
};

}  // namespace stagecraft
