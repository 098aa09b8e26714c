#include "stagecraft/compiler/program/compiled_program.h"

#include <algorithm>

namespace stagecraft {

int losses_of(const CompiledProgram& program) {
  const std::vector<StageProgram>& stages = program.partition.stages;
  const auto last = std::ranges::find_if(
      stages, [](const StageProgram& stage) { return stage.loss != kNoValue; });
  return last == stages.end()
             ? program.microbatches
             : program.microbatches / program.stage_graph.microbatch_size(last->id);
}

}  // namespace stagecraft
