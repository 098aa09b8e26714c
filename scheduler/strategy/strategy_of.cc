#include "stagecraft/scheduler/strategy/strategy_of.h"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace stagecraft {
namespace {

Filter filter_of(const Task& task) {
  const int stage = task.stage.value;
  const int microbatch = task.microbatch.value;
  switch (task.kind) {
    case CellKind::Forward:
      return filters::forward(stage, microbatch);
    case CellKind::BackwardInput:
      return filters::backward_input(stage, microbatch);
    case CellKind::BackwardWeight:
      return filters::backward_weight(stage, microbatch);
    default:
      return filters::backward(stage, microbatch);
  }
}

}  // namespace

Strategy strategy_of(const Schedule& given,
                     const Layout& layout,
                     const ReplicateOptions& options,
                     const std::vector<DividedRegion>& divided) {
  const Schedule schedule = layout.with_step_microbatches(given);
  Strategy strategy;
  strategy.split(filters::everything(), given.microbatches());
  for (int s = 0; s < layout.stages(); ++s) {
    const std::span<const Rank> ranks = layout.ranks_of(StageId(s));
    strategy.place(filters::stage(s), {ranks.begin(), ranks.end()});
  }
  for (int s = 0; s < layout.stages(); ++s) {
    const std::span<const Rank> ranks = layout.ranks_of(StageId(s));
    // Copies in the schedule share gradients without a directive, in the usual way.
    if (ranks.size() > 1 || (layout.replicas() > 1 && options != ReplicateOptions())) {
      strategy.replicate(filters::stage(s), {ranks.begin(), ranks.end()}, options);
    }
  }
  for (const auto& [stage, tag, parts] : divided) {
    const std::span<const Rank> ranks = layout.ranks_of(stage);
    strategy.shard(
        {.tags = {{std::string(kStageTag), stage.value}, {tag, std::nullopt}}, .pass = {}},
        {ranks.begin(), ranks.end()},
        /*stream=*/{},
        parts == std::ssize(ranks) ? 0 : parts);
  }
  for (const Schedule::Row& row : schedule.rows()) {
    std::vector<OrderDirective::Group> groups;
    for (const Cell& cell : row) {
      OrderDirective::Group group;
      for (const Task& task : cell.tasks()) {
        if (task.kind != CellKind::Update) {
          group.push_back(filter_of(task));
        }
      }
      if (!group.empty()) {
        groups.push_back(std::move(group));
      }
    }
    if (!groups.empty()) {
      strategy.order(std::move(groups));
    }
  }
  return strategy;
}

}  // namespace stagecraft
