#include "stagecraft/actors/executor/setup/plan_share.h"

#include "stagecraft/base/check.h"

namespace stagecraft {

std::vector<const StageProgram*> pointers_to(const StagePrograms& programs) {
  std::vector<const StageProgram*> pointers;
  for (const auto& program : programs) {
    pointers.push_back(program.get());
  }
  return pointers;
}

PlanShare share_of(const std::shared_ptr<const Plan>& plan, Rank rank) {
  SC_CHECK(rank.value >= 0 && rank.index() < plan->ranks.size(),
           "the plan has a list for rank " + to_string(rank));
  return {.rank = plan->ranks[rank.index()],
          .tables = {plan, &plan->tables},
          .list = {plan, &plan->list_of(rank)}};
}

StagePrograms programs_of(const PlanShare& share,
                          const std::vector<StageProgram>& programs,
                          const std::shared_ptr<const void>& owner) {
  StagePrograms mine;
  for (std::size_t s = 0; s < share.list->stages.size(); ++s) {
    mine.emplace_back(owner, &programs[share.stage(s).program.index()]);
  }
  return mine;
}

}  // namespace stagecraft
