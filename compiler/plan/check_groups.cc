#include "stagecraft/compiler/plan/check_groups.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stagecraft {
namespace {

/// How a list takes part in a group.
struct GroupPart {
  std::string_view stream;  // on which it starts
  std::int32_t times = 0;
};
using GroupParts = std::vector<std::map<std::int32_t, GroupPart>>;  // by list, then group

/// Returns those in sums, or in gathers.
GroupParts parts_in(const Plan& plan, bool gathers) {
  GroupParts parts(plan.lists.size());
  for (std::size_t l = 0; l < plan.lists.size(); ++l) {
    const RankList& list = plan.lists[l];
    for (const Instruction& i : list.instructions) {
      if (i.op == Op::Start && gathers_weights(plan.tables, i) == gathers) {
        GroupPart& part = parts[l][i.group];
        part.stream = i.stream.value >= 0 && i.stream.index() < list.streams.size()
                          ? list.streams[i.stream.index()]
                          : std::string_view();
        ++part.times;
      }
    }
  }
  return parts;
}

/// Checks that the lists of a group's members have its sum, and no others.
void check_members(const Plan& plan,
                   std::size_t number,
                   const GroupParts& parts,
                   std::string_view word,
                   std::vector<std::string>& faults) {
  const PlanGroup& group = plan.tables.groups[number];
  std::set<Rank> members;
  for (const std::vector<Rank>& set : group.sets) {
    members.insert(set.begin(), set.end());
  }
  std::set<std::string_view> streams;
  std::set<std::int32_t> times;
  for (const RankPlan& rank : plan.ranks) {
    const auto& of_list = parts[static_cast<std::size_t>(rank.list)];
    const auto found = of_list.find(static_cast<std::int32_t>(number));
    const bool enters = found != of_list.end();
    if (enters) {
      streams.insert(found->second.stream);
      times.insert(found->second.times);
    }
    if (enters != members.contains(rank.rank)) {
      faults.push_back(enters
                           ? fmt::format("P-7: rank {} {}s in, and is no member of, group {}, {}",
                                         rank.rank.value,
                                         word,
                                         number,
                                         to_string(plan.tables, group))
                           : fmt::format("P-7: rank {} does not {} in its group {}, {}",
                                         rank.rank.value,
                                         word,
                                         number,
                                         to_string(plan.tables, group)));
    }
  }
  if (streams.size() > 1) {
    faults.push_back(fmt::format("P-7: group {}, {}: its members {} on streams of other names: {}",
                                 number,
                                 to_string(plan.tables, group),
                                 word,
                                 fmt::join(streams, ", ")));
  }
  if (times.size() > 1) {
    faults.push_back(
        fmt::format("P-11: group {}, {}: its members {} in other numbers of rounds: {}",
                    number,
                    to_string(plan.tables, group),
                    word,
                    fmt::join(times, ", ")));
  }
}

/// Checks that the ranks that divide weights, each in one set, and no others, have one list, and
/// take the step's microbatches in their order (P-13).
void check_divided(const Plan& plan, std::size_t number, std::vector<std::string>& faults) {
  const PlanGroup& group = plan.tables.groups[number];
  std::multiset<Rank> members;
  for (const std::vector<Rank>& set : group.sets) {
    members.insert(set.begin(), set.end());
  }
  if (members.empty()) {
    return;  // P-9
  }
  const std::int32_t list = plan.ranks[members.begin()->index()].list;
  for (const RankPlan& rank : plan.ranks) {
    if (members.count(rank.rank) != (rank.list == list ? 1U : 0U)) {
      faults.push_back(fmt::format("P-13: group {}, {}: its ranks are not those of one list",
                                   number,
                                   to_string(plan.tables, group)));
      return;
    }
  }
  const int own = plan.tables.microbatches / static_cast<int>(members.size());
  int first = 0;
  for (const Rank rank : members) {
    if (plan.ranks[rank.index()].first_microbatch != first) {
      faults.push_back(
          fmt::format("P-13: group {}, {}: its ranks do not take the microbatches in their order",
                      number,
                      to_string(plan.tables, group)));
      return;
    }
    first += own;
  }
}

/// Checks where the parts of a tie are.
void check_tie(const Plan& plan, std::size_t number, std::vector<std::string>& faults) {
  const PlanGroup& tie = plan.tables.groups[number];
  for (const std::vector<Rank>& set : tie.sets) {
    for (std::size_t i = 0; i < set.size(); ++i) {
      if (!std::ranges::binary_search(plan.list_of(set[i]).stages, tie.stages[i])) {
        faults.push_back(fmt::format(
            "P-7: group {}, {}: not where its stages are", number, to_string(plan.tables, tie)));
      }
    }
  }
  if (!have_equal_shards(plan.tables, tie)) {
    faults.push_back(fmt::format("P-7: group {}, {}: the ranks of a set have other shards",
                                 number,
                                 to_string(plan.tables, tie)));
  }
}

}  // namespace

bool have_equal_shards(const PlanTables& tables, const PlanGroup& tie) {
  std::set<Sharing> sharing;
  std::vector<const std::vector<Rank>*> copies;  // by stage: the ranks that have it
  for (const StageId stage : tie.stages) {
    copies.push_back(nullptr);
    for (const PlanGroup& group : tables.groups) {
      if (group.kind == PlanGroup::Kind::Copies && group.sets.size() == 1 &&
          std::ranges::find(group.stages, stage) != group.stages.end()) {
        sharing.insert(group.sharing);
        copies.back() = &group.sets.front();
      }
    }
    if (copies.back() == nullptr) {
      sharing.insert(Sharing::Nothing);
    }
  }
  if (sharing.size() > 1 || sharing.contains(Sharing::Nothing)) {
    return sharing.size() == 1;
  }
  return std::ranges::all_of(tie.sets, [&](const std::vector<Rank>& set) {
    std::set<std::pair<std::ptrdiff_t, std::ptrdiff_t>> shards;  // each with their number
    for (std::size_t i = 0; i < set.size(); ++i) {
      const auto shard = std::ranges::find(*copies[i], set[i]) - copies[i]->begin();
      shards.emplace(shard, std::ssize(*copies[i]));
    }
    return shards.size() == 1 && shards.begin()->first < shards.begin()->second;
  });
}

void check_groups(const Plan& plan, std::vector<std::string>& faults) {
  const GroupParts sums = parts_in(plan, false);
  const GroupParts gathers = parts_in(plan, true);
  for (std::size_t g = 0; g < plan.tables.groups.size(); ++g) {
    const PlanGroup& group = plan.tables.groups[g];
    if (!plan.tables.training) {
      if (std::ranges::any_of(gathers, [&](const auto& of_list) {
            return of_list.contains(static_cast<std::int32_t>(g));
          })) {
        check_members(plan, g, gathers, "gather", faults);
      }
      continue;
    }
    if (group.kind == PlanGroup::Kind::Tie) {
      check_tie(plan, g, faults);
    }
    if (group.kind == PlanGroup::Kind::Divided) {
      check_divided(plan, g, faults);
      continue;
    }
    check_members(plan, g, sums, "sum", faults);
    if (group.has_shards()) {
      check_members(plan, g, gathers, "gather", faults);
    }
  }
}

}  // namespace stagecraft
