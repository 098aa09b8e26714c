#include "stagecraft/tools/train/decide/strategy_from_file.h"

#include <string>
#include <utility>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/dag/directives/apply.h"
#include "stagecraft/scheduler/dag/issue/issue.h"
#include "stagecraft/scheduler/dag/issue/schedule_of.h"
#include "stagecraft/tools/schedule/input/strategy_input.h"
#include "stagecraft/tools/train/decide/schedule_from_file.h"

namespace stagecraft::tools {
namespace {

Schedule schedule_before_program(const Strategy& strategy, const StageGraph& graph) {
  try {
    // Orders and shards may name regions and edges that only the model has.
    return schedule_of(
        issue(apply(strategy.without<OrderDirective, ShardDirective>(), bare_source(graph))));
  } catch (const Error&) {
    // Tells the faults of the orders too.
    (void)apply(strategy.without<ShardDirective>(), bare_source(graph));
    throw;
  }
}

}  // namespace

Choice choose_from_strategy(const TrainOptions& options,
                            const StepSize& size,
                            const std::optional<StageGraph>& graph,
                            Console& console) {
  const std::string& file = *options.pipeline.strategy;
  const Strategy strategy = read_strategy(file, "--strategy", console);
  const int stages = graph         ? graph->size()
                     : size.stages ? static_cast<int>(*size.stages)
                                   : placed_stages(strategy);
  if (stages < 1) {
    throw Error(Errc::UsageArgument,
                "a strategy that places no stage by its number expects --stages N, found none");
  }
  Schedule schedule = schedule_before_program(strategy, graph.value_or(StageGraph::chain(stages)));
  Layout layout = Layout::of(schedule);
  check_fixed("--ranks", options.pipeline.ranks, layout.ranks(), file);
  check_microbatches("--strategy", file, size, schedule, layout);
  return {.shape = {.stages = stages,
                    .microbatches = layout.units() * schedule.microbatches(),
                    .microbatch_size = size.microbatch_size,
                    .cut = size.cut},
          .schedule = std::move(schedule),
          .layout = std::move(layout),
          .strategy = strategy};
}

}  // namespace stagecraft::tools
