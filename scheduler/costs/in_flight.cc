#include "stagecraft/scheduler/costs/in_flight.h"

#include <algorithm>

#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

constexpr int kTableGroups = 2;

}  // namespace

int tabled_in_flight(const StagePace& x, const StagePace& y, int in_flight) {
  const int of_x = x.group * x.size;
  const int of_y = y.group * y.size;
  const int larger = std::max(x.size, y.size);
  // Add the excess of a group of x over one of y, and one of the larger microbatches, or two if
  // both groups have several.
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

std::vector<int> samples_in_flight(const StageGraph& stages, std::span<const StagePace> paces) {
  const auto order = stages.topological_order();
  SC_CHECK(order.has_value(), "samples_in_flight() of a stage graph with a cycle");
  std::vector<int> in_flight;
  for (const StagePace& pace : paces) {
    in_flight.push_back(sink_in_flight(pace));
  }
  for (auto s = order->rbegin(); s != order->rend(); ++s) {
    int& mine = in_flight[s->index()];
    for (const StageId c : stages.succs(*s)) {
      mine = std::max(mine,
                      compute_in_flight(paces[s->index()], paces[c.index()], in_flight[c.index()]));
    }
  }
  return in_flight;
}

}  // namespace stagecraft
