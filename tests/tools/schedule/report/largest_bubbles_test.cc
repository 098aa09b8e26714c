#include "stagecraft/tools/schedule/report/largest_bubbles.h"

#include <vector>

#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tools {
namespace {

/// ShortBubble is the part of a bubble that orders it.
struct ShortBubble {
  int row = 0;
  double start = 0;
  double end = 0;

  friend bool operator==(const ShortBubble&, const ShortBubble&) = default;
};

std::vector<ShortBubble> largest_of(const Schedule& schedule, double latency = 0) {
  Costs costs;
  costs.links.usual.latency = latency;
  const Timeline timeline = simulate(schedule, schedule.stage_graph(), costs);
  std::vector<ShortBubble> found;
  for (const Bubble& bubble : largest_bubbles(timeline)) {
    found.push_back({bubble.row, bubble.start, bubble.end});
  }
  return found;
}

TEST_CASE("the bubbles of a small schedule are all listed, longest first", "[tools][schedule]") {
  CHECK(largest_of(Schedule::parse("0F0 . . 0B0\n. 1F0 1B0 .\n")) ==
        std::vector<ShortBubble>{{0, 1, 4}, {1, 4, 6}, {1, 0, 1}});
  CHECK(largest_of(Schedule::parse("0F0 0B0\n")).empty());
}

TEST_CASE("the five longest of many bubbles are listed", "[tools][schedule]") {
  // Every device waits for its first task, for its first gradient, and for the end.
  CHECK(largest_of(one_f_one_b(4, 8)) ==
        std::vector<ShortBubble>{{0, 4, 10}, {3, 27, 33}, {1, 4, 8}, {2, 29, 33}, {3, 0, 3}});
}

TEST_CASE("equal bubbles are listed by row, then by time", "[tools][schedule]") {
  // Both directions wait 1 for the first value and 1 for the gradient.
  const Schedule both_ways = Schedule::parse(
      "@microbatches 2\n@edges 0-1,2-3\n@replicas 0=2,1=3\n"
      "0F0 3F0 3B0 0B0\n"
      "2F0 1F0 1B0 2B0\n");
  CHECK(largest_of(both_ways, 1) ==
        std::vector<ShortBubble>{{0, 1, 2}, {0, 5, 6}, {1, 1, 2}, {1, 5, 6}});
}

}  // namespace
}  // namespace stagecraft::tools
