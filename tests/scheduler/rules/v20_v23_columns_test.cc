#include <set>
#include <string>
#include <tuple>

#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/tests/scheduler/rules/random_schedule.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using test::late_tasks;
using test::RandomSchedule;

TEST_CASE("an array breaks V20 to V23 exactly where a task comes too late",
          "[scheduler][validate][property]") {
  RandomSchedule random(1);
  int valid = 0;
  int broken = 0;
  for (int round = 0; round < 3000; ++round) {
    const Schedule schedule = random.make();
    std::set<std::tuple<std::string, Task>> found;
    for (const Violation& v : validate(schedule, schedule.stage_graph())) {
      if (v.rule >= "V20" && v.rule <= "V23") {
        found.emplace(v.rule, v.task.value());
        for (const Violation::SameCause& alike : v.more) {
          REQUIRE(found.emplace(v.rule, alike.task.value()).second);
        }
      } else {
        REQUIRE(v.rule == "V28");
      }
    }
    CAPTURE(to_string(schedule));
    REQUIRE((found == late_tasks(schedule)));
    (found.empty() ? valid : broken) += 1;
  }
  CHECK(valid > 100);
  CHECK(broken > 100);
}

}  // namespace
}  // namespace stagecraft
