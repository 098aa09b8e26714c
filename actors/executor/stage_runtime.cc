#include "stagecraft/actors/executor/stage_runtime.h"

#include "stagecraft/actors/executor/state_names.h"

namespace stagecraft {

StageRuntime::StageRuntime(const CompiledProgram& compiled, StageId id, const Optimizer& optimizer)
    : program(&compiled.partition.stages[id.index()]),
      interpreter(compiled.graph, *program),
      bucket(compiled, *program, optimizer) {
  state.parameters = bucket.parameters();
  for (const int b : program->buffers) {
    state.buffers.push_back(
        compiled.graph.buffers[static_cast<std::size_t>(b)].tensor.detach().clone());
  }
}

void StageRuntime::append_state(const CompiledProgram& compiled,
                                std::vector<NamedTensor>& all) const {
  for (NamedTensor& n : bucket.state()) {
    all.push_back(std::move(n));
  }
  for (std::size_t b = 0; b < program->buffers.size(); ++b) {
    const auto position = static_cast<std::size_t>(program->buffers[b]);
    all.push_back({state_name(kBuffer, compiled.graph.buffers[position].name), state.buffers[b]});
  }
}

}  // namespace stagecraft
