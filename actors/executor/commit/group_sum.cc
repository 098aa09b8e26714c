#include "stagecraft/actors/executor/commit/group_sum.h"

#include <algorithm>
#include <cstdint>

#include "stagecraft/actors/executor/commit/copies_sum.h"
#include "stagecraft/actors/executor/commit/shared_parts.h"
#include "stagecraft/actors/executor/commit/tie_sum.h"

namespace stagecraft {
namespace {

constexpr std::int32_t kFirstGroup = 1;  // group 0 is all ranks, for the vote

/// Returns the position of the stage among those of the list; their number if it is none of them.
std::size_t position_of(const PlanShare& share, StageId stage) {
  const std::vector<StageId>& stages = share.list->stages;
  return static_cast<std::size_t>(std::ranges::find(stages, stage) - stages.begin());
}

/// Returns the position of a bucket among those of its first stage.
std::size_t number_in_stage(const PlanTables& tables, std::int32_t bucket) {
  const StageId stage = tables.buckets[static_cast<std::size_t>(bucket)].stages.front();
  return static_cast<std::size_t>(
      std::count_if(tables.buckets.begin(), tables.buckets.begin() + bucket, [&](const auto& b) {
        return std::ranges::find(b.stages, stage) != b.stages.end();
      }));
}

/// Returns whether the group, and none before it, sums over all copies of its stages.
bool is_first_of_copies(const PlanTables& tables, std::int32_t number) {
  const auto own = tables.groups.begin() + number;
  const auto sums_all = [&](const PlanGroup& group) {
    return group.kind == PlanGroup::Kind::Copies && !group.sums_parts() &&
           group.stages == own->stages;
  };
  return sums_all(*own) && std::none_of(tables.groups.begin(), own, sums_all);
}

std::int32_t rounds_of(const PlanShare& share, std::int32_t group) {
  const auto starts_a_sum = [&](const Instruction& i) {
    return i.op == Op::Start && i.group == group && !gathers_weights(*share.tables, i);
  };
  return static_cast<std::int32_t>(std::ranges::count_if(share.list->instructions, starts_a_sum));
}

std::unique_ptr<GroupSum> sum_of_copies(const PlanShare& share,
                                        std::int32_t number,
                                        Group members,
                                        std::vector<StageRuntime>& stages) {
  const PlanGroup& group = share.tables->groups[static_cast<std::size_t>(number)];
  std::vector<StageRuntime*> mine;
  bool first = false;
  for (const StageId id : group.stages) {
    const std::size_t position = position_of(share, id);
    if (position == stages.size()) {
      continue;
    }
    if (share.stage(position).copy == 0 && share.rank.first_microbatch == 0) {
      first = true;
      mine.insert(mine.begin(), &stages[position]);
    } else {
      mine.push_back(&stages[position]);
    }
  }
  return std::make_unique<CopiesSum>(std::move(members),
                                     std::move(mine),
                                     number_in_stage(*share.tables, group.bucket),
                                     first,
                                     rounds_of(share, number),
                                     is_first_of_copies(*share.tables, number));
}

std::unique_ptr<GroupSum> sum_of_tie(const PlanShare& share,
                                     const PlanGroup& group,
                                     Group members,
                                     const std::vector<StageRuntime>& stages) {
  const Rank self = share.rank.rank;
  const auto set = std::ranges::find_if(group.sets, [&](const std::vector<Rank>& ranks) {
    return std::ranges::find(ranks, self) != ranks.end();
  });
  TieParts parts{.ranks = *set, .parameters = group.parameters, .mine = {}};
  for (std::size_t i = 0; i < set->size(); ++i) {
    parts.mine.push_back((*set)[i] == self ? &stages[position_of(share, group.stages[i])]
                                           : nullptr);
  }
  return std::make_unique<TieSum>(std::move(members), parts);
}

std::unique_ptr<GroupSum> parts_of_weights(const PlanShare& share,
                                           const PlanGroup& group,
                                           Group members,
                                           std::vector<StageRuntime>& stages) {
  return std::make_unique<SharedParts>(std::move(members),
                                       stages[position_of(share, group.stages.front())],
                                       number_in_stage(*share.tables, group.bucket));
}

}  // namespace

Group group_of(const PlanShare& share, std::int32_t number) {
  return {.ranks = share.tables->groups[static_cast<std::size_t>(number)].members(share.rank.rank),
          .id = kFirstGroup + number};
}

std::vector<std::unique_ptr<GroupSum>> group_sums(const PlanShare& share,
                                                  std::vector<StageRuntime>& stages) {
  std::vector<std::unique_ptr<GroupSum>> sums;
  for (const PlanGroup& group : share.tables->groups) {
    const auto number = static_cast<std::int32_t>(sums.size());
    Group members = group_of(share, number);
    if (members.ranks.empty()) {
      sums.emplace_back();
      continue;
    }
    switch (group.kind) {
      case PlanGroup::Kind::Copies:
        sums.push_back(sum_of_copies(share, number, std::move(members), stages));
        break;
      case PlanGroup::Kind::Tie:
        sums.push_back(sum_of_tie(share, group, std::move(members), stages));
        break;
      case PlanGroup::Kind::Divided:
        sums.push_back(parts_of_weights(share, group, std::move(members), stages));
        break;
    }
  }
  return sums;
}

}  // namespace stagecraft
