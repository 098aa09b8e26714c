/// Standstills records the times when this whole process did not run, for example because its job
/// was suspended or a signal stopped it. To its peers, the process was silent in that time. Code
/// that loses a peer asks here whether the silence was on its own side.
///
/// watch_standstills() looks at the clock on a thread of its own. Any thread may read the record; a
/// mutex guards it.
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

  /// kLook: time between two looks. kLeast: the shortest gap that counts; a shorter one may be a
  /// busy machine.
  static constexpr Span kLook{200}, kLeast{1000};

  explicit Standstills(Time begin) : last_look_(begin) {}

  /// Called periodically. Returns the time since the last look if that is a standstill; else 0.
  Span look(Time now);

  /// Returns the longest standstill that ended within `window` before `now`; 0 if there is none.
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

/// Watches this process while the object exists, and logs each standstill after it is over. If no
/// thread can be made, no standstill is noticed.
[[nodiscard]] std::shared_ptr<const Standstills> watch_standstills();

}  // namespace stagecraft
