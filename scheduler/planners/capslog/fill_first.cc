#include "stagecraft/scheduler/planners/capslog/fill_first.h"

#include <algorithm>
#include <cstddef>

namespace stagecraft {

Filled fill_first(const OperatorMemory& memory,
                  const CutPart& part,
                  double threshold,
                  std::span<int> ends) {
  Filled filled;
  int next = part.first;
  for (int d = 0; d < part.devices; ++d) {
    const int left = part.devices - 1 - d;  // devices after this one
    const int most = part.end - left;
    auto stage = memory.stage_at(part.place + d, next);
    double bytes = stage.append(next++);
    while (next < most) {
      const double more = stage.append(next);
      if (more > threshold && left > 0) {
        filled.next = std::min(filled.next, more);
        break;
      }
      bytes = more;
      ++next;
    }
    if (bytes > threshold) {
      filled.next = std::min(filled.next, bytes);
    }
    filled.peak = std::max(filled.peak, bytes);
    ends[static_cast<std::size_t>(part.place + d)] = next;
  }
  return filled;
}

}  // namespace stagecraft
