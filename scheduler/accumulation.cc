#include "stagecraft/scheduler/accumulation.h"

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
  std::map<StageId, Microbatch> last;
  for (const Schedule::Row& row : schedule.rows()) {
    for (const Cell& cell : row) {
      for (const Task& task : cell.tasks()) {
        if (task.kind != CellKind::Backward && task.kind != CellKind::BackwardWeight) {
          continue;
        }
        const auto [before, first] = last.try_emplace(task.stage, task.microbatch);
        if (!first && task.microbatch < before->second) {
          return fmt::format("stage {} adds microbatch {} after microbatch {}",
                             task.stage.value,
                             task.microbatch.value,
                             before->second.value);
        }
        before->second = task.microbatch;
      }
    }
  }
  return std::nullopt;
}

}  // namespace stagecraft
