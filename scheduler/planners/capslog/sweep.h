/// Sweep decides whether a chain fits below a threshold at all, by trying every layer with which
/// each device could begin.
///
/// It is for memory with which fill_first() may miss cuts: a stage that starts later may hold more,
/// or a stage at a later place less. Made once by memory_cut() and called for every threshold;
/// allocates only when made. Used by one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "stagecraft/scheduler/planners/capslog/fill_first.h"

namespace stagecraft {

template <class Memory>
class Sweep {
 public:
  Sweep(const Memory& memory, int devices)
      : memory_(memory),
        width_(static_cast<std::size_t>(memory.size()) + 1),
        before_((static_cast<std::size_t>(devices) + 1) * width_) {}

  /// As fill_first(), but finds a cut if there is one. If there is none, the peak is infinite and
  /// `ends` stay as they are.
  /// Cost: devices x layers x the layers of a stage.
  Filled fill(const CutPart& part, double threshold, std::span<int> ends) {
    Filled filled{.peak = std::numeric_limits<double>::infinity()};
    std::ranges::fill(before_, kNone);
    before(0, part.first) = part.first;
    for (int d = 0; d < part.devices; ++d) {
      for (int first = part.first + d; first < part.end; ++first) {
        if (before(d, first) != kNone) {
          filled.next = std::min(filled.next, spread(part, d, first, threshold));
        }
      }
    }
    if (before(part.devices, part.end) != kNone) {
      filled.peak = threshold;
      int end = part.end;
      for (int d = part.devices; d > 0; --d) {
        ends[static_cast<std::size_t>(part.place + d - 1)] = end;
        end = before(d, end);
      }
    }
    return filled;
  }

 private:
  static constexpr int kNone = -1;

  /// By number of full devices and the next layer: the first layer of the last full device. Of
  /// several it is the latest, so that the first devices take as much as they can.
  [[nodiscard]] int& before(int devices, int layer) {
    return before_[static_cast<std::size_t>(devices) * width_ + static_cast<std::size_t>(layer)];
  }

  /// Starts device `d` of the part at `first`. Returns the smallest stage that exceeded the
  /// threshold.
  double spread(const CutPart& part, int d, int first, double threshold) {
    const int most = part.end - (part.devices - 1 - d);
    auto stage = memory_.stage_at(part.place + d, first);
    for (int layer = first; layer < most; ++layer) {
      const double bytes = stage.append(layer);
      if (bytes > threshold) {
        return bytes;
      }
      before(d + 1, layer + 1) = first;
    }
    return std::numeric_limits<double>::infinity();
  }

  const Memory& memory_;
  const std::size_t width_;
  std::vector<int> before_;
};

}  // namespace stagecraft
