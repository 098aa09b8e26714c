/// Setups of ranks that divide experts.
#pragma once

#include <memory>
#include <vector>

#include "stagecraft/actors/executor/setup/rank_setup.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/tests/compiler/plan/expert_plans.h"

namespace stagecraft::testing {

/// Returns the setups of two copies of one stage, which divide its four experts.
inline std::vector<RankSetup> divided_setups() {
  torch::manual_seed(3);
  const DividedPlan divided = divided_plan(expert_program(1, 2), gpipe(1, 1));
  const Job job{.plan_id = PlanId(7),
                .program = divided.program.shared(),
                .train = std::make_shared<const Plan>(divided.plan),
                .optimizer = AdamW{.lr = 0.1},
                .options = {.seed = 5}};
  return {rank_setup(job, Rank(0)), rank_setup(job, Rank(1))};
}

}  // namespace stagecraft::testing
