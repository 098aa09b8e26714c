/// largest_bubbles finds the bubbles that explain most of a schedule's idle time.
#pragma once

#include <vector>

#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft::tools {

/// Returns at most five, longest first; equal ones by row, then by time. Views the timeline.
[[nodiscard]] std::vector<Bubble> largest_bubbles(const Timeline& timeline);

}  // namespace stagecraft::tools
