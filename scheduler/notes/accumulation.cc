#include "stagecraft/scheduler/notes/accumulation.h"

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>

namespace stagecraft {
namespace {

template <class Visit>
void for_each_task(const Schedule& schedule, Visit&& visit) {
  for (const Schedule::Row& row : schedule.rows()) {
    for (const Cell& cell : row) {
      for (const Task& task : cell.tasks()) {
        visit(task);
      }
    }
  }
}

}  // namespace

std::optional<std::string> reordered_accumulation(const Schedule& schedule,
                                                  const StageGraph& graph) {
  const int replicas = graph.replicas();
  if (replicas > 1 && std::ssize(graph.frozen()) < graph.size()) {
    return fmt::format(
        "{} replicas of every stage add up their shares of the microbatches, and then the shares "
        "are added",
        replicas);
  }
  for (const std::vector<Rank>& ranks : schedule.headers().places) {
    if (ranks.size() > 1 && std::ssize(graph.frozen()) < graph.size()) {
      return fmt::format(
          "{} ranks run the same stages, add up the gradients of their own samples, and then these "
          "sums are added",
          ranks.size());
    }
  }
  struct Sum {
    int terms = 0;
    Microbatch largest;
  };
  std::map<StageId, Sum> sums;
  std::optional<std::string> reordered;
  for_each_task(schedule, [&](const Task& task) {
    const bool adds = task.kind == CellKind::Backward || task.kind == CellKind::BackwardWeight;
    if (reordered || !adds || !graph.needs_weight_grad(task.stage)) {
      return;
    }
    Sum& sum = sums[task.stage];
    ++sum.terms;
    if (sum.terms > 2 && task.microbatch < sum.largest) {  // two terms may come either way
      reordered = fmt::format("stage {} adds microbatch {} after microbatch {}",
                              task.stage.value,
                              task.microbatch.value,
                              sum.largest.value);
    }
    sum.largest = std::max(sum.largest, task.microbatch);
  });
  return reordered;
}

std::vector<LateForward> late_forwards(const Schedule& schedule) {
  std::map<StageId, Microbatch> largest;
  std::map<StageId, LateForward> late;
  for_each_task(schedule, [&](const Task& task) {
    if (task.kind != CellKind::Forward) {
      return;
    }
    Microbatch& before = largest.try_emplace(task.stage, task.microbatch).first->second;
    if (task.microbatch < before) {
      late.try_emplace(task.stage, LateForward{task.stage, task.microbatch, before});
    }
    before = std::max(before, task.microbatch);
  });
  std::vector<LateForward> all;
  for (const auto& [stage, forward] : late) {
    all.push_back(forward);
  }
  return all;
}

}  // namespace stagecraft
