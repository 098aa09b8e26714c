/// Clock: where time comes from, so that a test can be the one who lets it pass.
///
/// Whoever measures or sets a deadline takes a `const Clock&`; a program gives a SteadyClock, a
/// test a ManualClock. Both may be read from any thread.
#pragma once

#include <atomic>
#include <chrono>

namespace stagecraft {

class Clock {
 public:
  using Duration = std::chrono::nanoseconds;
  using Time = std::chrono::time_point<std::chrono::steady_clock, Duration>;

  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  [[nodiscard]] virtual Time now() const = 0;
};

/// The machine's monotonic clock.
class SteadyClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override { return std::chrono::steady_clock::now(); }
};

/// Stands still until told to advance.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override { return Time(Duration(elapsed_.load())); }
  void advance(Duration by) { elapsed_ += by.count(); }

 private:
  std::atomic<Duration::rep> elapsed_{0};
};

/// Units: seconds, for people and for JSON.
[[nodiscard]] constexpr double to_seconds(Clock::Duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace stagecraft
