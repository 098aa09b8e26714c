#include "stagecraft/actors/executor/setup/rank_setup.h"

#include <algorithm>

#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

const RankPlan& list_of(const Plan& plan, Rank rank) {
  const auto found = std::ranges::find(plan.ranks, rank, &RankPlan::rank);
  SC_CHECK(found != plan.ranks.end(), "the plan has a list for rank " + to_string(rank));
  return *found;
}

}  // namespace

RankSetup rank_setup(const Job& job, Rank rank) {
  RankSetup setup{
      .rank = rank,
      .plan_id = job.plan_id,
      .stages = {},
      .train = list_of(*job.train, rank),
      .ranks = {},
      .replica_groups = job.train->replica_groups,
      .ties = job.train->ties,
      .microbatches = job.train->microbatches,
      .losses = job.train->losses,
      .model_parameters = static_cast<std::int64_t>(job.program->graph.parameters.size()),
      .inputs = job.program->inputs,
      .labels = job.program->labels,
      .optimizer = job.optimizer,
      .options = job.options};
  for (const StageId stage : setup.train.stages) {
    setup.stages.push_back(job.program->partition.stages[stage.index()]);
  }
  for (const RankPlan& other : job.train->ranks) {
    setup.ranks.push_back(other.rank);
  }
  return setup;
}

BindScope bind_scope(const RankSetup& setup) {
  BindScope scope{.stages = {},
                  .replica_groups = setup.replica_groups.size(),
                  .ties = setup.ties.size(),
                  .training = true};
  for (const StageProgram& stage : setup.stages) {
    scope.stages.push_back(&stage);
  }
  return scope;
}

}  // namespace stagecraft
