#include "stagecraft/scheduler/in_flight.h"

#include <algorithm>

namespace stagecraft {
namespace {

constexpr int kTableGroups = 2;

/// What `x` needs beyond `y`.
int further(const StagePace& x, const StagePace& y) {
  const int of_x = x.group * x.size;
  const int of_y = y.group * y.size;
  const int larger = std::max(x.size, y.size);
  if (std::max(x.group, y.group) <= kTableGroups) {
    // The ten rows of the table: what a group of x has beyond one of y, and one of the larger
    // microbatches, or two where both groups have several.
    return std::max(of_x - of_y, 0) + (larger < std::min(of_x, of_y) ? 2 * larger : larger);
  }
  return x == y ? of_x : std::max(of_x, larger) + larger;
}

}  // namespace

int compute_in_flight(const StagePace& x, const StagePace& y, int in_flight) {
  const int samples = in_flight + further(x, y);
  return (samples + x.size - 1) / x.size * x.size;
}

}  // namespace stagecraft
