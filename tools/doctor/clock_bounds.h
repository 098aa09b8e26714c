/// ClockBounds: by how much another host's clock is ahead of this one's, as far as asking for its
/// time can tell: it answered somewhere between the question and the arrival of the answer.
#pragma once

#include <algorithm>
#include <limits>

namespace stagecraft::tools {

/// Units: seconds; below 0 it is behind.
struct ClockBounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  /// One more question. `asked`, `answered`: by this host's clock; `there`: what it said.
  void narrow(double asked, double there, double answered) {
    low = std::max(low, there - answered);
    high = std::min(high, there - asked);
  }

  /// What is certain of the difference, beyond half of a round trip; 0: there may be none.
  [[nodiscard]] double certain() const { return low > 0 ? low : std::min(high, 0.0); }
};

}  // namespace stagecraft::tools
