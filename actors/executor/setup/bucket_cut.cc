#include "stagecraft/actors/executor/setup/bucket_cut.h"

#include <cstddef>

namespace stagecraft {

std::vector<BucketCut> bucket_cuts_of(const PlanTables& tables, StageId stage, Rank rank) {
  std::vector<BucketCut> cuts;
  for (std::size_t b = 0; b < tables.buckets.size(); ++b) {
    if (std::ranges::find(tables.buckets[b].stages, stage) == tables.buckets[b].stages.end()) {
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
    const std::vector<Rank> members = group->members(rank);
    const bool divided = group->kind == PlanGroup::Kind::Divided;
    (divided ? cut.part : cut.shard) =
        static_cast<std::int32_t>(std::ranges::find(members, rank) - members.begin());
    (divided ? cut.parts : cut.shards) = std::max(1, static_cast<std::int32_t>(members.size()));
    cut.sharing = group->sharing;
    if (cut.shards > 1) {
      cut.tied = tied_parameters_of(tables, stage);
    }
    if (divided) {
      const auto set = std::ranges::find(group->sets, members);
      cut.copy = static_cast<std::int32_t>(set - group->sets.begin());
    }
  }
  return cuts;
}

}  // namespace stagecraft
