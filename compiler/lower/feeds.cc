#include "stagecraft/compiler/lower/feeds.h"

#include <algorithm>

namespace stagecraft {

std::vector<Feed> feeds_of(const RankPlan& list, const std::vector<StageProgram>& stages) {
  std::vector<Feed> feeds;
  for (const Instruction& i : list.instructions) {
    if (i.op != Op::Recv || i.peer != kDriver || i.writes.empty()) {
      continue;
    }
    const ValueKey& key = i.writes.front().value;  // of the stage that reads it
    const auto stage = std::ranges::find(stages, key.stage, &StageProgram::id);
    if (stage == stages.end()) {
      continue;
    }
    for (const StageInput& input : stage->inputs) {
      if (input.value == key.value) {
        feeds.push_back({list.rank,
                         i.edge,
                         i.transferred(),
                         input.source == StageInput::Source::Label,
                         input.position});
      }
    }
  }
  return feeds;
}

}  // namespace stagecraft
