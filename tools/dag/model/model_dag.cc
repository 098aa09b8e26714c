#include "stagecraft/tools/dag/model/model_dag.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "stagecraft/compiler/lower/step_source.h"
#include "stagecraft/compiler/program/check.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/shapes/in_chunks.h"
#include "stagecraft/compiler/shapes/resize.h"
#include "stagecraft/scheduler/dag/directives/apply.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"

namespace stagecraft::tools {
namespace {

std::vector<std::string> operators_of(const StageProgram& stage, const Chunk& chunk) {
  std::vector<std::string> names;
  for (const Node& node : chunk.nodes) {
    names.push_back(node.function >= 0
                        ? name_of(stage.attachments[static_cast<std::size_t>(node.function)])
                        : operator_name(node));
  }
  return names;
}

/// Returns the source of the DAG, with the operators of each chunk.
DagSource source_of(const Program& program, const Layout& layout) {
  const CompiledProgram& compiled = program.compiled();
  StepSource source = step_source(compiled, layout);
  for (std::size_t s = 0; s < source.stages.size(); ++s) {
    const StageProgram& stage = compiled.partition.stages[source.stages[s].program.index()];
    for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
      source.dag.chunks[s][c].operators = operators_of(stage, stage.chunks[c]);
    }
  }
  return std::move(source.dag);
}

TrainingDag dag_in_layout(const Program& sized, const Strategy& strategy, const Layout& layout) {
  return apply(strategy, source_of(in_chunks(sized, strategy, layout), layout));
}

}  // namespace

TrainingDag model_dag(const Program& program, const Strategy& strategy) {
  const StageGraph graph = program.stage_graph();
  // No stage has a row yet: the strategy places them.
  const Layout stages = Layout::of(
      Schedule(Schedule::Form::List, {}, {.rows = 0, .stages = graph.size(), .graph = graph}));
  return dag_in_layout(program, strategy, stages);
}

TrainingDag model_dag(const Program& program, const Schedule& schedule) {
  const CheckResult checked = check(program, schedule);
  checked.or_throw();
  return dag_in_layout(resize(program, schedule.stage_graph().microbatch_sizes()),
                       strategy_of(*checked.schedule, *checked.layout),
                       *checked.layout);
}

}  // namespace stagecraft::tools
