#include "stagecraft/scheduler/accumulation.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace stagecraft {

std::optional<std::string> reordered_accumulation(const Schedule& schedule) {
  const int replicas = schedule.stage_graph().replicas();
  if (replicas > 1) {
    return fmt::format(
        "{} replicas of every stage each add up their share of the microbatches, and then the "
        "shares are added",
        replicas);
  }
  struct Sum {
    int terms = 0;
    Microbatch largest;
  };
  std::map<StageId, Sum> sums;
  for (const Schedule::Row& row : schedule.rows()) {
    for (const Cell& cell : row) {
      for (const Task& task : cell.tasks()) {
        if (task.kind != CellKind::Backward && task.kind != CellKind::BackwardWeight) {
          continue;
        }
        Sum& sum = sums[task.stage];
        ++sum.terms;
        if (sum.terms > 2 && task.microbatch < sum.largest) {  // two terms may come either way
          return fmt::format("stage {} adds microbatch {} after microbatch {}",
                             task.stage.value,
                             task.microbatch.value,
                             sum.largest.value);
        }
        sum.largest = std::max(sum.largest, task.microbatch);
      }
    }
  }
  return std::nullopt;
}

}  // namespace stagecraft
