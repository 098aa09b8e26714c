#include "stagecraft/actors/executor/setup/rank_setup.h"

#include <algorithm>

namespace stagecraft {

std::vector<BucketCut> RankSetup::buckets_of(std::size_t stage) const {
  const StageId id = train.list->stages[stage];
  const PlanTables& tables = *train.tables;
  std::vector<BucketCut> cuts;
  for (std::size_t b = 0; b < tables.buckets.size(); ++b) {
    if (std::ranges::find(tables.buckets[b].stages, id) == tables.buckets[b].stages.end()) {
      continue;
    }
    BucketCut& cut = cuts.emplace_back(BucketCut{.chunks = tables.buckets[b].chunks});
    const auto group = std::ranges::find_if(tables.groups, [&](const PlanGroup& g) {
      return (g.has_shards() || g.kind == PlanGroup::Kind::Divided) &&
             g.bucket == static_cast<std::int32_t>(b);
    });
    if (group == tables.groups.end()) {
      continue;
    }
    const std::vector<Rank> members = group->members(rank());
    const bool divided = group->kind == PlanGroup::Kind::Divided;
    (divided ? cut.part : cut.shard) =
        static_cast<std::int32_t>(std::ranges::find(members, rank()) - members.begin());
    (divided ? cut.parts : cut.shards) = std::max(1, static_cast<std::int32_t>(members.size()));
    cut.sharing = group->sharing;
    if (cut.shards > 1) {
      cut.tied = tied_parameters_of(tables, id);
    }
    if (divided) {
      const auto set = std::ranges::find(group->sets, members);
      cut.copy = static_cast<std::int32_t>(set - group->sets.begin());
    }
  }
  return cuts;
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
