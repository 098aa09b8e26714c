/// Setups of ranks that divide experts.
#pragma once

#include <memory>
#include <vector>

#include "stagecraft/actors/executor/setup/rank_setup.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/tests/compiler/plan/expert_plans.h"

namespace stagecraft::testing {

/// Returns the setups of copies of one stage, of which `parts` divide its four experts.
inline std::vector<RankSetup> divided_setups(int copies = 2, int parts = 2) {
  torch::manual_seed(3);
  const DividedPlan divided =
      divided_plan(expert_program(1, copies), gpipe(1, 1), copies, {}, parts);
  const Job job{.plan_id = PlanId(7),
                .program = divided.program.shared(),
                .train = std::make_shared<const Plan>(divided.plan),
                .optimizer = AdamW{.lr = 0.1},
                .options = {.seed = 5}};
  std::vector<RankSetup> setups;
  for (int rank = 0; rank < copies; ++rank) {
    setups.push_back(rank_setup(job, Rank(rank)));
  }
  return setups;
}

}  // namespace stagecraft::testing
