#include "stagecraft/compiler/lower/feeds.h"

#include <algorithm>

namespace stagecraft {

std::vector<Feed> feeds_of(const RankList& list,
                           const RankPlan& rank,
                           const PlanTables& tables,
                           const std::vector<const StageProgram*>& programs) {
  std::vector<Feed> feeds;
  for (const Instruction& i : list.instructions) {
    if (i.op != Op::Recv || i.peer != kDriverPeer || i.writes.empty()) {
      continue;
    }
    const ValueKey& key = i.writes.front().value;  // of the stage that reads it
    const auto program = std::ranges::find(
        programs, tables.stages[key.stage.index()].program, [](const auto* p) { return p->id; });
    if (program == programs.end()) {
      continue;
    }
    const auto input = std::ranges::find((*program)->inputs, key.value, &StageInput::value);
    if (input != (*program)->inputs.end()) {
      feeds.push_back({rank.rank,
                       i.edge,
                       tagged_microbatch(tables, rank, i),
                       input->source == StageInput::Source::Label,
                       input->position});
    }
  }
  return feeds;
}

}  // namespace stagecraft
