/// ClockBounds bounds the time by which another host's clock is ahead of this one. It uses
/// questions for the host's time: the host answered between the question and the arrival of the
/// answer.
#pragma once

#include <algorithm>
#include <limits>

namespace stagecraft::tools {

/// ClockBounds holds seconds; below 0: the other clock is behind.
struct ClockBounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  /// Adds one more question. `asked`, `answered`: by this host's clock; `there`: the host's answer.
  void narrow(double asked, double there, double answered) {
    low = std::max(low, there - answered);
    high = std::min(high, there - asked);
  }

  /// Returns the certain part of the difference, beyond half of a round trip; 0: there may be none.
  [[nodiscard]] double certain() const { return low > 0 ? low : std::min(high, 0.0); }
};

}  // namespace stagecraft::tools
