#include "stagecraft/scheduler/rules/causes/order_exchange.h"

#include <algorithm>
#include <cstddef>

#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/tests/scheduler/rules/random_schedule.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using test::late_tasks;
using test::RandomSchedule;

TEST_CASE("where an array gets no exchange none would help",
          "[scheduler][validate][property][repair]") {
  RandomSchedule random(3);
  int repaired = 0;
  int hopeless = 0;
  for (int round = 0; round < 400; ++round) {
    const Schedule schedule = random.make();
    const auto found = validate(schedule, schedule.stage_graph());
    if (late_tasks(schedule).empty()) {
      continue;
    }
    const bool proposed =
        std::ranges::any_of(found, [](const Violation& v) { return v.repair.has_value(); });
    bool possible = false;
    for (std::size_t r = 0; r < schedule.rows().size(); ++r) {
      for (int i = 0; i < static_cast<int>(schedule.columns()); ++i) {
        for (int j = i + 1; j < static_cast<int>(schedule.columns()); ++j) {
          possible |= late_tasks(apply(schedule, {static_cast<int>(r), i, j})).empty();
        }
      }
    }
    CAPTURE(to_string(schedule));
    REQUIRE(proposed == possible);
    (proposed ? repaired : hopeless) += 1;
  }
  CHECK(repaired > 20);
  CHECK(hopeless > 20);
}

}  // namespace
}  // namespace stagecraft
