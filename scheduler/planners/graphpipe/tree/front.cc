#include "stagecraft/scheduler/planners/graphpipe/tree/front.h"

#include <algorithm>

namespace stagecraft::graphpipe {
namespace {

/// Returns whether `a` is as good as `b` in everything; with equal needs, less memory is better.
bool covers(const Way& a, const Way& b, bool any_in_flight) {
  if (a.turns != b.turns || a.devices > b.devices) {
    return false;
  }
  if (any_in_flight) {
    return true;
  }
  return a.in_flight < b.in_flight ||
         (a.in_flight == b.in_flight && (a.devices < b.devices || a.peak <= b.peak));
}

}  // namespace

std::vector<PartitionStage> Pieces::stages_of(int piece) const {
  std::vector<PartitionStage> found;
  std::vector<int> waiting{piece};
  while (!waiting.empty()) {
    const auto [a, b] = pieces_[static_cast<std::size_t>(waiting.back())];
    waiting.pop_back();
    if (a == kNone) {
      found.push_back(stages_[static_cast<std::size_t>(b)]);
    } else {
      waiting.push_back(a);
      waiting.push_back(b);
    }
  }
  return found;
}

bool Front::takes(const Way& way, bool any_in_flight) const {
  return std::ranges::none_of(ways_,
                              [&](const Way& kept) { return covers(kept, way, any_in_flight); });
}

void Front::insert(const Way& way, bool any_in_flight) {
  std::erase_if(ways_, [&](const Way& kept) { return covers(way, kept, any_in_flight); });
  ways_.push_back(way);
}

}  // namespace stagecraft::graphpipe
