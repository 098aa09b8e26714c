#include "stagecraft/actors/driver/recovery_advice.h"

#include "stagecraft/tests/actors/driver/wait_plan.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

/// Returns a plan of three ranks, with a stage of the program each.
Plan ranks_with(const std::vector<int>& stages) {
  Plan plan = plan_of_lists({{}, {}, {}});
  for (std::size_t r = 0; r < stages.size(); ++r) {
    plan.tables.stages[r].program = StageId(stages[r]);
  }
  return plan;
}

TEST_CASE("a stage has copies if two ranks have it, also under different numbers",
          "[actors][driver]") {
  CHECK_FALSE(any_stage_has_copies(ranks_with({0, 1, 2})));
  CHECK(any_stage_has_copies(ranks_with({0, 1, 1})));
  CHECK_FALSE(every_stage_has_copies(ranks_with({0, 1, 1})));
  CHECK(every_stage_has_copies(ranks_with({0, 0, 0})));
}

TEST_CASE("copies that divide weights have them all if each part is there twice",
          "[actors][driver][experts]") {
  Plan plan = ranks_with({0, 0, 0});
  PlanGroup group{.kind = PlanGroup::Kind::Divided, .sets = {{Rank(0), Rank(1)}}};
  plan.tables.groups = {group};
  CHECK_FALSE(every_stage_has_copies(plan));
  group.sets.push_back({Rank(2), Rank(3)});
  plan.tables.groups = {group};
  CHECK(every_stage_has_copies(plan));
}

}  // namespace
}  // namespace stagecraft
