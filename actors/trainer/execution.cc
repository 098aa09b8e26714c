#include "stagecraft/actors/trainer/execution.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

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

/// Returns the stages that have regions with the tag. Errors: ScheduleInvalid if none has.
std::vector<DividedRegion> regions_with(std::string_view tag,
                                        int parts,
                                        const Program& program,
                                        const Layout& layout) {
  std::vector<DividedRegion> regions;
  const auto has_tag = [&](const Node& node) {
    return std::ranges::find(node.annotations, tag, &Annotation::tag) != node.annotations.end();
  };
  for (int s = 0; s < layout.stages() && !tag.empty(); ++s) {
    const StageId stage(s);
    const StageId model = layout.replicas() > 1 ? layout.model_stage(stage) : stage;
    const StageProgram& of = program.compiled().partition.stages[model.index()];
    if (std::ranges::any_of(of.chunks, [&](const Chunk& chunk) {
          return std::ranges::any_of(chunk.nodes, has_tag);
        })) {
      regions.push_back({stage, std::string(tag), parts});
    }
  }
  if (regions.empty() && !tag.empty()) {
    throw Error(Errc::ScheduleInvalid,
                fmt::format("the model has no region {0} whose weights copies could divide: mark "
                            "one by sc::region(\"{0}\", ...)",
                            tag));
  }
  return regions;
}

}  // namespace

StageGraph Execution::stage_graph() const {
  return layout.expand(sized.compiled().stage_graph);
}

Execution make_execution(const Program& program,
                         const Schedule& schedule,
                         const ReplicateOptions& copies,
                         std::string_view divided,
                         int parts) {
  const CheckResult checked = check(program, schedule);
  checked.or_throw();
  const Layout& layout = *checked.layout;
  Strategy strategy =
      strategy_of(*checked.schedule, layout, copies, regions_with(divided, parts, program, layout));
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
