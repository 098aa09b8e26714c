#include "stagecraft/compiler/lower/releases.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace stagecraft {
namespace {

/// Returns, by position, the groups whose weights nobody uses behind it.
std::multimap<std::size_t, std::int32_t> ends_of_rounds(const RankList& list,
                                                        const PlanTables& tables) {
  std::map<std::int32_t, std::size_t> last_use;  // of the round that goes on, by group
  std::multimap<std::size_t, std::int32_t> ends;
  const auto end = [&](std::int32_t group) {
    if (const auto found = last_use.extract(group); !found.empty()) {
      ends.emplace(found.mapped(), group);
    }
  };
  for (std::size_t i = 0; i < list.instructions.size(); ++i) {
    const Instruction& instruction = list.instructions[i];
    if (instruction.op == Op::Start && gathers_weights(tables, instruction)) {
      end(instruction.group);
    }
    for (std::size_t g = 0; g < tables.groups.size(); ++g) {
      if (uses_weights_of(tables, tables.groups[g], instruction)) {
        last_use[static_cast<std::int32_t>(g)] = i;
      }
    }
  }
  while (!last_use.empty()) {
    end(last_use.begin()->first);
  }
  return ends;
}

}  // namespace

void add_releases(RankList& list, const PlanTables& tables) {
  if (std::ranges::none_of(tables.groups, [&](const PlanGroup& group) {
        return gathers_for_tasks(tables, group);
      })) {
    return;
  }
  const auto ends = ends_of_rounds(list, tables);
  std::vector<Instruction> result;
  std::vector<std::int32_t> open;  // groups of rounds that have ended in an overlap group
  int next_id = static_cast<int>(list.instructions.size());
  for (std::size_t i = 0; i < list.instructions.size(); ++i) {
    const auto [first, last] = ends.equal_range(i);
    for (auto ended = first; ended != last; ++ended) {
      open.push_back(ended->second);
    }
    const int overlap = list.instructions[i].overlap;
    const bool inside = overlap >= 0 && i + 1 < list.instructions.size() &&
                        list.instructions[i + 1].overlap == overlap;
    result.push_back(std::move(list.instructions[i]));
    for (const std::int32_t group :
         inside ? std::vector<std::int32_t>() : std::exchange(open, {})) {
      Instruction& release = result.emplace_back();
      release.id = InstructionId(next_id++);
      release.stream = kCompute;
      release.op = Op::Release;
      release.group = group;
    }
  }
  list.instructions = std::move(result);
}

}  // namespace stagecraft
