#include "stagecraft/scheduler/rules/repair/wrong_graph.h"

#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("two encoders and a head are no chain", "[scheduler][repair]") {
  const Schedule heads = Schedule::parse("0F0 . . 0B0\n1F0 . . 1B0\n. 2F0 2B0 .");
  const auto found = find_wrong_graph(heads);
  REQUIRE(found.has_value());
  CHECK(found->rule == "V32");
  CHECK(found->missing == "stage graph");
  CHECK_THAT(found->message,
             ContainsSubstring("because stage 1 does not wait for 0;") &&
                 ContainsSubstring("--graph 0-2,1-2"));
}

TEST_CASE("every stage that does not wait is named", "[scheduler][repair]") {
  const StageGraph three = StageGraph::from_edges(4, {{0, 3}, {1, 3}, {2, 3}});
  const auto found =
      find_wrong_graph(Schedule(Schedule::Form::Array, one_f_one_b(three, 4).rows()));
  REQUIRE(found.has_value());
  CHECK_THAT(found->message,
             ContainsSubstring("of the stages 1 does not wait for 0, 2 does not wait for 1"));
}

TEST_CASE("a chain, and a schedule with another fault, have no wrong graph",
          "[scheduler][repair]") {
  CHECK_FALSE(find_wrong_graph(one_f_one_b(4, 8)).has_value());
  CHECK_FALSE(find_wrong_graph(Schedule::parse("0F0 . . 0B0\n1F0 . . 1B0\n. 2F0 . .")).has_value());
  // One late cell of one microbatch is a fault of the order, not of the graph.
  CHECK_FALSE(
      find_wrong_graph(Schedule::parse("0F0 0F1 . 0B0 . 0B1\n1F0 . 1B0 1F1 1B1 .")).has_value());
}

}  // namespace
}  // namespace stagecraft
