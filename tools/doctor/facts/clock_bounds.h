/// ClockBounds: by how much another host's clock is ahead of this one, as far as questions for its
/// time can tell: the host answered between the question and the arrival of the answer.
#pragma once

#include <algorithm>
#include <limits>

namespace stagecraft::tools {

/// Units: seconds; below 0: it is behind.
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
