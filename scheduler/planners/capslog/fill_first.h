/// fill_first gives each device of a row layers as long as they fit below a threshold; the last
/// device takes the rest.
///
/// It is the inner step of memory_cut(). Allocates nothing. Pure.
/// Source: CAPSlog, algorithm 2. Its loop makes one stage too many, and its bound can leave the
/// last device without a layer; here each device keeps one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

namespace stagecraft {

/// Layers [first, end) for the devices [place, place + devices). Each device takes at least one
/// layer.
struct CutPart {
  int first = 0;
  int end = 0;
  int place = 0;
  int devices = 1;
};

struct Filled {
  double peak = 0;  ///< of the fullest device; above the threshold if the layers do not fit
  /// The smallest stage that exceeded the threshold: every threshold below it gives the same
  /// layout.
  double next = std::numeric_limits<double>::infinity();
};

/// Writes the end of each device's layers into `ends`, by place.
/// `Memory`: stage_at(place, first) returns a stage; its append(layer) returns the stage's bytes.
template <class Memory>
Filled fill_first(const Memory& memory,
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
