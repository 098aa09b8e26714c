#include "stagecraft/scheduler/planners/graphpipe/in_flight.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::graphpipe {
namespace {

TEST_CASE("every row of the table has its value", "[scheduler][planners]") {
  struct Row {
    Turns own, next;  // {size, turn}
    int next_in_flight, expected;
  };
  const auto row = GENERATE(Row{{1, 2}, {1, 4}, 4, 6},
                            Row{{1, 1}, {1, 2}, 2, 3},
                            Row{{1, 8}, {2, 2}, 4, 12},
                            Row{{1, 2}, {1, 1}, 1, 3},
                            Row{{2, 4}, {1, 4}, 4, 12},
                            Row{{2, 2}, {1, 2}, 2, 6},
                            Row{{1, 1}, {1, 1}, 1, 2},
                            Row{{1, 2}, {1, 2}, 2, 4},
                            Row{{1, 1}, {2, 1}, 2, 4},
                            Row{{2, 1}, {1, 1}, 1, 4});
  CHECK(tabled_in_flight(row.own, row.next, row.next_in_flight) == row.expected);
}

TEST_CASE("sizes 1, 2, 4 along a chain hold 10, 8 and 4 samples, size 4 throughout 12, 8 and 4",
          "[scheduler][planners]") {
  const int last = sink_in_flight({4, 1});
  CHECK(last == 4);
  const int middle = compute_in_flight({2, 1}, {4, 1}, last);
  CHECK(middle == 8);
  CHECK(compute_in_flight({1, 1}, {2, 1}, middle) == 10);
  CHECK(compute_in_flight({4, 1}, {4, 1}, last) == 8);
  CHECK(compute_in_flight({4, 1}, {4, 1}, 8) == 12);
}

TEST_CASE("what is in flight is a multiple of the stage's own size", "[scheduler][planners]") {
  CHECK(tabled_in_flight({2, 1}, {1, 1}, 2) == 5);
  CHECK(compute_in_flight({2, 1}, {1, 1}, 2) == 6);
}

TEST_CASE("turns of more than two microbatches take the bound that always suffices",
          "[scheduler][planners]") {
  CHECK(tabled_in_flight({1, 4}, {1, 4}, 4) == 6);  // 7 are needed where B = 2 F
  CHECK(compute_in_flight({1, 4}, {1, 4}, 4) == 9);
  CHECK(compute_in_flight({1, 2}, {1, 2}, 2) == tabled_in_flight({1, 2}, {1, 2}, 2));
  CHECK(sink_in_flight({2, 4}) == 8);
}

TEST_CASE("the bound is never below the table", "[scheduler][planners]") {
  const int size = GENERATE(1, 2, 4, 8);
  const int turn = GENERATE(1, 2, 4, 8);
  for (const int next_size : {1, 2, 4, 8}) {
    for (const int next_turn : {1, 2, 4, 8}) {
      const Turns own{size, turn};
      const Turns next{next_size, next_turn};
      const int at_sink = sink_in_flight(next);
      CHECK(tabled_in_flight(own, next, at_sink) > at_sink);
      if (turn * size <= next_turn * next_size) {
        CHECK(sufficient_in_flight(own, next, at_sink) >= tabled_in_flight(own, next, at_sink));
      }
    }
  }
}

}  // namespace
}  // namespace stagecraft::graphpipe
