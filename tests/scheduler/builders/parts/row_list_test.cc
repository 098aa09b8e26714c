#include "stagecraft/scheduler/builders/parts/row_list.h"

#include <utility>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

std::vector<Schedule::Row> two_rows() {
  RowList first;
  first.forward(0, 0);
  first.backward(0, 0);
  RowList second;
  second.forward(1, 0);
  second.backward_input(1, 0);
  second.backward_weight(1, 0);
  return {first.take(), second.take()};
}

TEST_CASE("finished rows have the columns of the unit-time simulation (RW-1)",
          "[scheduler][builders]") {
  CHECK(finish(two_rows(), StageGraph::chain(2), 1) ==
        Schedule::parse("0F0 . . 0B0\n. 1F0 1I0 1W0"));
}

TEST_CASE("only a graph that is no plain chain becomes a header", "[scheduler][builders]") {
  CHECK_FALSE(finish(two_rows(), StageGraph::chain(2), 1).headers().graph.has_value());
  const StageGraph apart = StageGraph::from_edges(2, {});
  const Schedule schedule = finish(two_rows(), apart, 1);
  REQUIRE(schedule.headers().graph.has_value());
  CHECK(schedule.headers().microbatches == 1);
  CHECK(schedule.rows()[1].front() == cells::F(1, 0));
}

TEST_CASE("illegal values are answered with the nearest legal ones",
          "[scheduler][builders][bad-input]") {
  const auto refused = [](auto&& check) { return refusal(check, Errc::ScheduleParameter); };
  CHECK(refused([] { require_positive("b", "devices", 0); }) ==
        "b needs devices >= 1, got 0; nearest: 1");
  const auto legal = [](int value) { return value % 3 == 0; };
  CHECK(refused([&] { require_legal("b", "a multiple of 3", "rows", 7, legal); }) ==
        "b needs a multiple of 3, got rows 7; nearest: 6 or 9");
  CHECK(refused([&] { require_legal("b", "a multiple of 3", "rows", 2, legal); }) ==
        "b needs a multiple of 3, got rows 2; nearest: 3");
  CHECK_THAT(refused([] { require_legal("b", "magic", "rows", 2, [](int) { return false; }); }),
             ContainsSubstring("nearest: none"));
  CHECK_NOTHROW(require_legal("b", "a multiple of 3", "rows", 9, legal));
  CHECK_THAT(refused([] {
               require_acyclic("b", StageGraph::from_edges(2, {{0, 1}, {1, 0}}));
             }),
             ContainsSubstring("found 0 -> 1 -> 0; remove one edge"));
}

}  // namespace
}  // namespace stagecraft
