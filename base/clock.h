/// Clock: where time comes from, so that a test can be the one who lets it pass.
///
/// Whoever measures or sets a deadline takes a `const Clock&`; a program gives a SteadyClock, a
/// test a ManualClock. Both may be read from any thread. Where times of two processes are compared,
/// the one's are brought into the other's clock by an offset (CLK-1).
///
/// CLK-1: steady clocks of one domain, that is of one boot and one time namespace, are one clock.
///        Of others nothing is assumed: the offset is measured by a question and its answer.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

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

/// What the steady clock said, and which steady clock that is.
struct ClockReading {
  std::string domain;  ///< empty where the system does not say: then it is like no other
  std::int64_t nanoseconds = 0;
};

template <class V>
decltype(auto) visit_fields(ClockReading& m, V&& v) {
  return v(m.domain, m.nanoseconds);
}

[[nodiscard]] ClockReading read_clock();

/// The middle of a stretch of time.
[[nodiscard]] std::int64_t halfway(std::int64_t begin, std::int64_t end);

/// What to add to times of their clock to have them in ours: 0 in one domain. Else `theirs`, read
/// halfway through answering, is taken for the middle between `asked` and `answered`, both ours;
/// it is wrong by at most half the time that question and answer were on their way.
[[nodiscard]] std::int64_t clock_offset(const ClockReading& theirs,
                                        const ClockReading& asked,
                                        std::int64_t answered);

/// Units: seconds, for people and for JSON.
[[nodiscard]] constexpr double to_seconds(Clock::Duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace stagecraft
