#include "stagecraft/actors/trainer/execution.h"

#include <utility>

#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/compiler/program/check.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/shapes/in_chunks.h"
#include "stagecraft/compiler/shapes/resize.h"
#include "stagecraft/compiler/training/step_source.h"
#include "stagecraft/scheduler/dag/apply.h"
#include "stagecraft/scheduler/dag/issue.h"
#include "stagecraft/scheduler/dag/schedule_of.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"

namespace stagecraft {
namespace {

/// `make_strategy`: makes the strategy for the layout of the schedule.
template <class MakeStrategy>
Execution execution_of(const Program& program,
                       const Schedule& schedule,
                       MakeStrategy&& make_strategy) {
  const CheckResult checked = check(program, schedule);
  checked.or_throw();
  const Layout& layout = *checked.layout;
  Strategy strategy = make_strategy(layout);
  const Program sized =
      in_chunks(resize(program, schedule.stage_graph().microbatch_sizes()), strategy, layout);
  auto plan = std::make_shared<const Plan>(lower(sized, strategy, layout, /*training=*/true));
  return {.program = program,
          .sized = sized,
          .schedule = schedule,
          .layout = layout,
          .strategy = std::move(strategy),
          .plan = std::move(plan),
          .reordered_buffers = checked.reordered_buffers,
          .notes = checked.notes};
}

/// Returns a layout of the program's stages, of which none has a row yet.
Layout layout_of_stages(const Program& program) {
  const StageGraph graph = program.stage_graph();
  return Layout::of(
      Schedule(Schedule::Form::List, {}, {.rows = 0, .stages = graph.size(), .graph = graph}));
}

}  // namespace

Execution make_execution(const Program& program,
                         const Schedule& schedule,
                         const ReplicateOptions& copies) {
  return execution_of(program, schedule, [&](const Layout& layout) {
    return strategy_of(schedule, layout, copies);
  });
}

Execution make_execution(const Program& program, const Strategy& strategy) {
  const Layout stages = layout_of_stages(program);
  DagSource source = step_source(in_chunks(program, strategy, stages).compiled(), stages).dag;
  const Schedule schedule = schedule_of(issue(apply(strategy, std::move(source))));
  return execution_of(program, schedule, [&](const Layout&) { return strategy; });
}

}  // namespace stagecraft
