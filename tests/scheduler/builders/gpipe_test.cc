#include "stagecraft/scheduler/builders/gpipe.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("GPipe's array is the published one", "[scheduler][builders]") {
  CHECK(gpipe(4, 8) == Schedule::parse(R"(
F0 F1 F2 F3 F4 F5 F6 F7 . . . . . . B0 B1 B2 B3 B4 B5 B6 B7
. F0 F1 F2 F3 F4 F5 F6 F7 . . . . B0 B1 B2 B3 B4 B5 B6 B7 .
. . F0 F1 F2 F3 F4 F5 F6 F7 . . B0 B1 B2 B3 B4 B5 B6 B7 . .
. . . F0 F1 F2 F3 F4 F5 F6 F7 B0 B1 B2 B3 B4 B5 B6 B7 . . .)"));
}

TEST_CASE("GPipe backwards newest first takes as long", "[scheduler][builders]") {
  const Schedule reversed = gpipe(4, 8, {.reverse_backward = true});
  CHECK(reversed.columns() == 22);
  CHECK(to_string(reversed.to_list().rows()[0][8]) == "0B7");
  CHECK(to_string(reversed.to_list().rows()[0][15]) == "0B0");
}

TEST_CASE("GPipe runs two encoders at the same time", "[scheduler][builders]") {
  CHECK(gpipe(StageGraph::from_edges(3, {{0, 2}, {1, 2}}), 4) == Schedule::parse(R"(
F0 F1 F2 F3 . . B0 B1 B2 B3
F0 F1 F2 F3 . . B0 B1 B2 B3
. F0 F1 F2 F3 B0 B1 B2 B3 .)"));
}

}  // namespace
}  // namespace stagecraft
