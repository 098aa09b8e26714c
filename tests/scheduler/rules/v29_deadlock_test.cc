#include <algorithm>
#include <cstddef>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tests/scheduler/rules/random_schedule.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using test::needs;
using test::Place;
using test::places_of;
using test::RandomSchedule;

TEST_CASE("a list breaks V29 exactly when it cannot run, and its cycle is one",
          "[scheduler][validate][property]") {
  RandomSchedule random(2);
  int running = 0;
  int stuck = 0;
  for (int round = 0; round < 3000; ++round) {
    const Schedule list = random.make().to_list();
    const auto violations = validate(list, list.stage_graph());
    const auto found = std::ranges::find(violations, "V29", &Violation::rule);
    bool runs = true;
    try {
      (void)simulate(list, list.stage_graph());
    } catch (const Error&) {
      runs = false;
    }
    CAPTURE(to_string(list));
    REQUIRE((found == violations.end()) == runs);
    (runs ? running : stuck) += 1;
    if (runs) {
      continue;
    }
    const auto places = places_of(list);
    for (std::size_t i = 0; i < found->cells.size(); ++i) {
      const auto& [row, column] = found->cells[i];
      const auto& [next_row, next_column] = found->cells[(i + 1) % found->cells.size()];
      bool linked = row == next_row && next_column > column;
      const Cell& next =
          list.rows()[static_cast<std::size_t>(next_row)][static_cast<std::size_t>(next_column)];
      for (const Task& task : next.tasks()) {
        for (const Task& need : needs(list, places, task)) {
          linked |= places.at(need) ==
                    Place(static_cast<std::size_t>(row), static_cast<std::size_t>(column));
        }
      }
      REQUIRE(linked);
    }
    if (found->repair) {
      const auto left = validate(apply(list, *found->repair), list.stage_graph());
      REQUIRE(std::ranges::find(left, "V29", &Violation::rule) == left.end());
    }
  }
  CHECK(running > 100);
  CHECK(stuck > 100);
}

}  // namespace
}  // namespace stagecraft
