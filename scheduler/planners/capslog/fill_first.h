/// fill_first: each device of a row takes layers as long as they fit below a threshold, and the
/// last takes the rest.
///
/// The inner step of memory_cut(). Allocates nothing. Pure.
/// Source: CAPSlog, algorithm 2; its loop makes a stage too many and its bound can leave the last
/// device without a layer, here each keeps one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

namespace stagecraft {

/// Layers [first, end) for the devices [place, place + devices). At least one layer for each.
struct CutPart {
  int first = 0;
  int end = 0;
  int place = 0;
  int devices = 1;
};

struct Filled {
  double peak = 0;  ///< of the fullest device; above the threshold where the layers do not fit
  /// The least that stood in the way: below it every threshold gives the same layout.
  double next = std::numeric_limits<double>::infinity();
};

/// Writes where the layers of each device end into `ends`, by place.
/// `Memory`: stage_at(place, first) gives a stage whose append(layer) returns its bytes.
template <class Memory>
Filled fill_first(const Memory& memory,
                  const CutPart& part,
                  double threshold,
                  std::span<int> ends) {
  Filled filled;
  int next = part.first;
  for (int d = 0; d < part.devices; ++d) {
    const int left = part.devices - 1 - d;  // devices behind this one
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
