#include "stagecraft/actors/executor/setup/rank_setup.h"

namespace stagecraft {

std::vector<BucketCut> RankSetup::buckets_of(std::size_t stage) const {
  return bucket_cuts_of(*train.tables, train.list->stages[stage], rank());
}

RankSetup rank_setup(const Job& job, Rank rank) {
  RankSetup setup{
      .plan_id = job.plan_id,
      .train = share_of(job.train, rank),
      .stages = {},
      .ranks = {},
      .model_parameters = static_cast<std::int64_t>(job.program->graph.parameters.size()),
      .inputs = job.program->inputs,
      .labels = job.program->labels,
      .optimizer = job.optimizer,
      .options = job.options};
  setup.stages = programs_of(setup.train, job.program->partition.stages, job.program);
  for (const RankPlan& other : job.train->ranks) {
    setup.ranks.push_back(other.rank);
  }
  if (job.has_driver_row && rank == job.train->ranks.back().rank) {
    setup.options.column_tensors = false;  // nobody can take them there
  }
  return setup;
}

}  // namespace stagecraft
