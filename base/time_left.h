/// time_left turns a deadline into a span, for waits that take one.
#pragma once

#include <algorithm>
#include <chrono>

#include "stagecraft/base/clock.h"

namespace stagecraft {

/// Returns how long it is until then by the present clock; 0 if it is over.
[[nodiscard]] inline std::chrono::milliseconds time_left(Clock::Time deadline) {
  return std::max(
      std::chrono::milliseconds(0),
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::current()->now()));
}

}  // namespace stagecraft
