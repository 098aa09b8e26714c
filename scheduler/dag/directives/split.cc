#include <fmt/format.h>

#include "stagecraft/scheduler/dag/directives/directives.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

int split(const std::vector<Numbered<SplitDirective>>& splits, StrategyFaults& faults) {
  int parts = 1;
  for (const auto& [number, directive] : splits) {
    if (number != splits.front().number) {
      faults.note(number, "the step is split already: keep one split of everything");
    } else if (!directive->filter.tags.empty() || directive->filter.pass) {
      faults.note(number, "only the whole step is split: write split {} dim=MB n=...");
    } else if (directive->dimension != kMicrobatchTag) {
      faults.note(number,
                  fmt::format("microbatches are the only dimension of a split: write dim={}",
                              kMicrobatchTag));
    } else if (directive->parts < 1 || directive->parts > kMaxMicrobatches) {
      faults.note(number, fmt::format("n is a number from 1 to {}", kMaxMicrobatches));
    } else {
      parts = directive->parts;
    }
  }
  return parts;
}

}  // namespace stagecraft
