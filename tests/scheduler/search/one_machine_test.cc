#include "stagecraft/scheduler/search/one_machine.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

Ticks bound_of(std::vector<MachineJob> jobs) {
  return one_machine_bound(jobs);
}

TEST_CASE("a device takes as long as its tasks, their heads and their tails",
          "[scheduler][search]") {
  CHECK(bound_of({}) == 0);
  CHECK(bound_of({{2, 3, 4}}) == 9);
  CHECK(bound_of({{0, 3, 0}, {0, 4, 0}}) == 7);
  CHECK(bound_of({{5, 3, 0}, {0, 4, 0}}) == 8);
  // The longer tail goes first in any input order.
  CHECK(bound_of({{0, 2, 1}, {0, 2, 9}}) == 11);
}

TEST_CASE("a task with a longer tail interrupts", "[scheduler][search]") {
  // Without interruption it would take 10 + 1 + 5 = 16.
  CHECK(bound_of({{0, 10, 0}, {2, 1, 5}}) == 11);
  // This is the example with seven tasks of Carlier (1982): heads, times, tails.
  CHECK(bound_of({{10, 5, 7},
                  {13, 6, 26},
                  {11, 7, 24},
                  {20, 4, 21},
                  {30, 3, 8},
                  {0, 6, 17},
                  {30, 2, 0}}) == 49);
}

}  // namespace
}  // namespace stagecraft
