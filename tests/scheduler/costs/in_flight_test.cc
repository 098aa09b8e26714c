#include "stagecraft/scheduler/costs/in_flight.h"

#include <algorithm>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("every row of the table of samples in flight has its value", "[scheduler][sizes]") {
  struct Row {
    int number;
    StagePace x, y;
    int in_flight;
    int expected;
  };
  const Row row = GENERATE(Row{1, {2, 1}, {4, 1}, 4, 6},
                           Row{2, {1, 1}, {2, 1}, 2, 3},
                           Row{3, {8, 1}, {2, 2}, 4, 12},
                           Row{4, {2, 1}, {1, 1}, 1, 3},
                           Row{5, {4, 2}, {4, 1}, 4, 12},
                           Row{6, {2, 2}, {2, 1}, 2, 6},
                           Row{7, {1, 1}, {1, 1}, 1, 2},
                           Row{8, {2, 1}, {2, 1}, 2, 4},
                           Row{9, {1, 1}, {1, 2}, 2, 4},
                           Row{10, {1, 2}, {1, 1}, 1, 4});
  INFO("row " << row.number);
  CHECK(tabled_in_flight(row.x, row.y, row.in_flight) == row.expected);
  if (std::max(row.x.group, row.y.group) <= 2) {
    CHECK(compute_in_flight(row.x, row.y, row.in_flight) == row.expected);
  }
}

TEST_CASE("from groups of 3 on, samples in flight are enough instead of few",
          "[scheduler][sizes]") {
  CHECK(compute_in_flight({2, 1}, {4, 1}, 4) == 7);   // the table's row 1: 6
  CHECK(compute_in_flight({8, 1}, {2, 2}, 4) == 14);  // row 3: 12
  CHECK(compute_in_flight({4, 2}, {4, 1}, 4) == 14);  // row 5: 12
  CHECK(compute_in_flight({4, 1}, {4, 1}, 4) == 8);   // equal paces: a group
}

TEST_CASE("samples in flight are whole microbatches", "[scheduler][sizes]") {
  CHECK(compute_in_flight({1, 2}, {2, 1}, 3) == 6);  // 5 rounded up
  CHECK(compute_in_flight({1, 4}, {1, 2}, 2) == 8);
}

TEST_CASE("sizes 1, 2 and 4 along a chain keep 10, 8 and 4 samples in flight",
          "[scheduler][sizes]") {
  const int last = 4;
  const int middle = compute_in_flight({1, 2}, {1, 4}, last);
  CHECK(middle == 8);
  CHECK(compute_in_flight({1, 1}, {1, 2}, middle) == 10);
  CHECK(compute_in_flight({1, 4}, {1, 4}, last) == 8);
  CHECK(compute_in_flight({1, 4}, {1, 4}, 8) == 12);
}

}  // namespace
}  // namespace stagecraft
