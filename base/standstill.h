/// Standstills: the times for which this whole process did not run, as when its job is suspended or
/// it is stopped by a signal. Its peers take that for silence, so whoever loses one asks here
/// whether the silence was this process's own.
///
/// watch_standstills() looks at the clock on a thread of its own; what is known is read by any
/// thread, under the mutex.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

namespace stagecraft {

class Standstills {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Span = std::chrono::milliseconds;

  /// Between two looks; and the least that counts: less may be a busy machine.
  static constexpr Span kLook{200}, kLeast{1000};

  explicit Standstills(Time begin) : last_look_(begin) {}

  /// Called again and again. Returns for how long nobody has looked, where that is a standstill;
  /// otherwise 0.
  Span look(Time now);

  /// Returns the longest standstill that has ended within `window` before `now`; 0: there is none.
  [[nodiscard]] Span longest(Time now, Span window) const;

 private:
  struct Standstill {
    Time end;
    Span length;
  };

  [[nodiscard]] Span since_last_look(Time now) const;

  mutable std::mutex mutex_;
  Time last_look_;
  std::vector<Standstill> known_;
};

/// Watches this process for as long as the object is there, and logs each standstill when it is
/// over. Where no thread can be had, none is noticed.
[[nodiscard]] std::shared_ptr<const Standstills> watch_standstills();

}  // namespace stagecraft
