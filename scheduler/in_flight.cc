#include "stagecraft/scheduler/in_flight.h"

#include <algorithm>

namespace stagecraft {
namespace {

constexpr int kTableGroups = 2;

}  // namespace

int tabled_in_flight(const StagePace& x, const StagePace& y, int in_flight) {
  const int of_x = x.group * x.size;
  const int of_y = y.group * y.size;
  const int larger = std::max(x.size, y.size);
  // What a group of x has beyond one of y, and one of the larger microbatches, or two where both
  // groups have several.
  return in_flight + std::max(of_x - of_y, 0) +
         (larger < std::min(of_x, of_y) ? 2 * larger : larger);
}

int compute_in_flight(const StagePace& x, const StagePace& y, int in_flight) {
  const int of_x = x.group * x.size;
  const int larger = std::max(x.size, y.size);
  int samples = in_flight + (x == y ? of_x : std::max(of_x, larger) + larger);
  if (std::max(x.group, y.group) <= kTableGroups) {
    samples = tabled_in_flight(x, y, in_flight);
  }
  return (samples + x.size - 1) / x.size * x.size;
}

}  // namespace stagecraft
