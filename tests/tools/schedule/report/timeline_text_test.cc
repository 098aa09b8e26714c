#include "stagecraft/tools/schedule/report/timeline_text.h"

#include <algorithm>
#include <string>

#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string timeline_of_schedule(const Schedule& schedule,
                                 const TimelineTextOptions& options = {},
                                 const Costs& costs = {}) {
  return timeline_text(simulate(schedule, schedule.stage_graph(), costs), options);
}

TEST_CASE("the text of a timeline lists the rows, the largest waits and the critical path",
          "[tools][schedule]") {
  const std::string text = timeline_of_schedule(one_f_one_b(4, 8));
  CHECK(text.starts_with("makespan 33\n\n"));
  for (const char* part : {"row  busy  idle  bubble  span idle  in flight  warm-up  dependency  "
                           "transfer  drain\n",
                           "d0     24     9   27.3%          9          4        0           9  "
                           "       0      0\n",
                           "all    96    36   27.3%         18",
                           "  d0  6 from 4 to 10: dependency, 0B0 waited for 1B0\n",
                           "  d3  6 from 27 to 33: drain\n",
                           "critical path, 22 tasks\n  0F0 -> 1F0"}) {
    CHECK_THAT(text, ContainsSubstring(part));
  }
}

TEST_CASE("a wait for a transfer is separate from the wait for its task", "[tools][schedule]") {
  Costs far;
  far.links.usual.latency = 50;
  const std::string text = timeline_of_schedule(one_f_one_b(2, 2), {}, far);
  // The input of 1F0 takes 50 to arrive.
  CHECK_THAT(text, ContainsSubstring("d1  51 from 0 to 51: warm-up, 1F0 waited for 0F0\n"));
  CHECK_THAT(text, ContainsSubstring("transfer, 0B0 waited for 1B0\n"));
}

TEST_CASE("a schedule without idle time has no bubbles to list", "[tools][schedule]") {
  const std::string text = timeline_of_schedule(one_f_one_b(1, 1));
  CHECK_THAT(text, ContainsSubstring("\nno bubble at all\n") && !ContainsSubstring("largest"));
  CHECK(text.ends_with("critical path, 2 tasks\n  0F0 -> 0B0\n"));
}

TEST_CASE("no line is wider than the terminal", "[tools][schedule]") {
  const int width = GENERATE(60, 80, 200);
  const std::string text = timeline_of_schedule(one_f_one_b(4, 8), {.width = width});
  CAPTURE(width, text);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    CHECK(end - begin <= static_cast<std::size_t>(width));
    begin = end + 1;
  }
  CHECK_THAT(text, ContainsSubstring("transfer"));
}

TEST_CASE("rows beyond 32 and the middle of a long path are left out", "[tools][schedule]") {
  const std::string all = timeline_of_schedule(one_f_one_b(32, 2));
  CHECK_THAT(all, ContainsSubstring("\nd31 ") && !ContainsSubstring("not shown"));
  const std::string text = timeline_of_schedule(one_f_one_b(40, 40));
  CHECK_THAT(text,
             ContainsSubstring("\nd31 ") && !ContainsSubstring("\nd32 ") &&
                 ContainsSubstring("(8 rows not shown; --json has them)\n"));
  const std::string path = text.substr(text.find("critical path, "));
  CHECK_THAT(path, ContainsSubstring("  0F0 -> 1F0 -> ") && ContainsSubstring(" -> ... -> "));
  CHECK(path.ends_with("-> 0B39\n"));
  CHECK(std::ranges::count(path, '\n') <= 4);  // its head and three lines
}

TEST_CASE("peaks in bytes are a column if the costs know them", "[tools][schedule][costs]") {
  Costs costs;
  costs.stages.memory.activations = {2048, 512};
  const std::string text = timeline_of_schedule(one_f_one_b(2, 2), {.bytes = true}, costs);
  CHECK_THAT(text,
             ContainsSubstring("peak bytes") && ContainsSubstring("4.0 KiB") &&
                 ContainsSubstring("512 B"));
  CHECK_THAT(timeline_of_schedule(one_f_one_b(2, 2), {}, costs), !ContainsSubstring("peak bytes"));
}

}  // namespace
}  // namespace stagecraft::tools
