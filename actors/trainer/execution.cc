#include "stagecraft/actors/trainer/execution.h"

#include <utility>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/compiler/program/check.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/shapes/in_chunks.h"
#include "stagecraft/compiler/shapes/resize.h"
#include "stagecraft/scheduler/dag/issue/schedule_of.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"

namespace stagecraft {
namespace {

bool has_code_on_driver(const Program& program) {
  return program.compiled().whole_stages.has_value();
}

Execution execution_of(const Program& program,
                       Program sized,
                       const CheckResult& checked,
                       Strategy strategy,
                       Lowered lowered) {
  return {.program = program,
          .sized = std::move(sized),
          .schedule = *checked.schedule,
          .layout = *checked.layout,
          .has_driver_row = has_code_on_driver(program),
          .strategy = std::move(strategy),
          .plan = std::make_shared<const Plan>(std::move(lowered.plan)),
          .lowering = std::move(lowered.passes),
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

StageGraph Execution::stage_graph() const {
  return layout.expand(sized.compiled().stage_graph);
}

Execution make_execution(const Program& program,
                         const Schedule& schedule,
                         const ReplicateOptions& copies) {
  const CheckResult checked = check(program, schedule);
  checked.or_throw();
  const Layout& layout = *checked.layout;
  Strategy strategy = strategy_of(*checked.schedule, layout, copies);
  Program sized =
      in_chunks(resize(program, schedule.stage_graph().microbatch_sizes()), strategy, layout);
  Lowered lowered = lower(sized, strategy, layout, /*training=*/true);
  return execution_of(program, std::move(sized), checked, std::move(strategy), std::move(lowered));
}

Execution make_execution(const Program& program, const Strategy& strategy) {
  if (has_code_on_driver(program)) {
    throw Error(Errc::ScheduleInvalid,
                "a strategy does not place code of the driver (sc::on_driver) yet: run this "
                "program by a schedule");
  }
  const Layout stages = layout_of_stages(program);
  Program sized = in_chunks(program, strategy, stages);
  Lowered lowered = lower(sized, strategy, stages, /*training=*/true);
  const Schedule schedule = schedule_of(lowered.issued);
  const CheckResult checked = check(program, schedule);
  checked.or_throw();
  return execution_of(program, std::move(sized), checked, strategy, std::move(lowered));
}

}  // namespace stagecraft
