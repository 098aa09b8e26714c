#include "stagecraft/scheduler/planners/capslog/sweep.h"

#include <algorithm>
#include <limits>

namespace stagecraft {
namespace {

constexpr int kNotReached = -1;

}  // namespace

Sweep::Sweep(const OperatorMemory& memory, int devices)
    : memory_(memory),
      width_(static_cast<std::size_t>(memory.size()) + 1),
      before_((static_cast<std::size_t>(devices) + 1) * width_) {}

int& Sweep::before(int devices, int op) {
  return before_[static_cast<std::size_t>(devices) * width_ + static_cast<std::size_t>(op)];
}

Filled Sweep::fill(const CutPart& part, double threshold, std::span<int> ends) {
  Filled filled{.peak = std::numeric_limits<double>::infinity()};
  std::ranges::fill(before_, kNotReached);
  before(0, part.first) = part.first;
  for (int d = 0; d < part.devices; ++d) {
    for (int first = part.first + d; first < part.end; ++first) {
      if (before(d, first) != kNotReached) {
        filled.next = std::min(filled.next, spread(part, d, first, threshold));
      }
    }
  }
  if (before(part.devices, part.end) != kNotReached) {
    filled.peak = threshold;
    int end = part.end;
    for (int d = part.devices; d > 0; --d) {
      ends[static_cast<std::size_t>(part.place + d - 1)] = end;
      end = before(d, end);
    }
  }
  return filled;
}

double Sweep::spread(const CutPart& part, int d, int first, double threshold) {
  const int most = part.end - (part.devices - 1 - d);
  auto stage = memory_.stage_at(part.place + d, first);
  for (int op = first; op < most; ++op) {
    const double bytes = stage.append(op);
    if (bytes > threshold) {
      return bytes;
    }
    before(d + 1, op + 1) = first;
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace stagecraft
