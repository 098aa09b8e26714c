#include "stagecraft/actors/driver/recovery_advice.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <utility>

namespace stagecraft {
namespace {

/// Returns the number of ranks that have each stage of the program, on the first `count` ranks.
std::map<StageId, int> ranks_by_stage(const Plan& plan, std::size_t count) {
  std::map<StageId, int> ranks;
  for (const RankPlan& rank : std::span(plan.ranks).first(count)) {
    std::map<StageId, int> of_rank;
    for (const StageId stage : plan.list_of(rank.rank).stages) {
      of_rank[plan.tables.stages[stage.index()].program] = 1;
    }
    for (const auto& [stage, one] : of_rank) {
      ranks[stage] += one;
    }
  }
  return ranks;
}

/// Returns whether each rank of the group has something that no other has.
bool is_held_once(const PlanGroup& group) {
  return group.has_shards() || (group.kind == PlanGroup::Kind::Divided && group.sets.size() == 1);
}

bool has_copies(const std::pair<const StageId, int>& stage) {
  return stage.second > 1;
}

}  // namespace

bool every_stage_has_copies(const Plan& plan, bool has_driver_row) {
  const std::size_t with_state = plan.ranks.size() - (has_driver_row ? 1 : 0);
  return std::ranges::none_of(plan.tables.groups, is_held_once) &&
         std::ranges::all_of(ranks_by_stage(plan, with_state), has_copies);
}

bool any_stage_has_copies(const Plan& plan) {
  return std::ranges::any_of(ranks_by_stage(plan, plan.ranks.size()), has_copies);
}

}  // namespace stagecraft
