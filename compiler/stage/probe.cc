#include "stagecraft/compiler/stage/probe.h"

#include <algorithm>
#include <map>
#include <memory>

#include <ATen/core/grad_mode.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include "stagecraft/base/check.h"
#include "stagecraft/compiler/libtorch/memory_meter.h"

namespace stagecraft {
namespace {

using Tensors = std::vector<at::Tensor>;

Tensors inputs_of(const StageProgram& program,
                  const Tensors& inputs,
                  const Tensors& labels,
                  const std::map<ValueId, at::Tensor>& crossing) {
  Tensors result;
  for (const StageInput& input : program.inputs) {
    switch (input.source) {
      case StageInput::Source::Model:
        result.push_back(inputs[static_cast<std::size_t>(input.position)]);
        break;
      case StageInput::Source::Label:
        result.push_back(labels[static_cast<std::size_t>(input.position)]);
        break;
      case StageInput::Source::Stage:
        result.push_back(crossing.at(input.value));
        break;
    }
  }
  return result;
}

StageRun run_stage(const Graph& graph,
                   StageProgram& program,
                   const Tensors& inputs,
                   const Tensors& labels,
                   const std::map<ValueId, at::Tensor>& crossing) {
  StageRun run;
  run.state = probe_state(graph, program);
  for (const at::Tensor& input : inputs_of(program, inputs, labels, crossing)) {
    run.leaves.push_back(input.requires_grad() ? input.detach().requires_grad_() : input.detach());
  }
  SC_CHECK(program.chunks.size() == 1, "stages are measured before they are cut into chunks");
  const ChunkInterpreter interpreter(program, program.chunks.front());
  const auto meter = std::make_shared<MemoryMeter>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
  const at::AutoGradMode grad(true);
  run.result = interpreter.run(run.leaves, run.state, kProbeKey);
  program.saved_bytes = std::max<std::int64_t>(0, meter->live());
  program.transient_bytes = std::max<std::int64_t>(0, meter->peak() - program.saved_bytes);
  return run;
}

}  // namespace

StageState probe_state(const Graph& graph, const StageProgram& program) {
  StageState state;
  for (const StageParameter& p : program.parameters) {
    const at::Tensor& original = graph.parameters[static_cast<std::size_t>(p.position)].tensor;
    state.parameters.push_back(original.detach().requires_grad_(original.requires_grad()));
  }
  for (const StageBuffer& b : program.buffers) {
    const at::Tensor& original = graph.buffers[static_cast<std::size_t>(b.position)].tensor;
    state.buffers.push_back(original.detach().clone());
  }
  return state;
}

std::vector<StageRun> run_stages(const Graph& graph,
                                 Partition& partition,
                                 const Tensors& inputs,
                                 const Tensors& labels) {
  std::map<ValueId, at::Tensor> crossing;
  std::vector<StageRun> runs(partition.stages.size());
  for (const StageId s : partition.order) {
    StageProgram& program = partition.stages[s.index()];
    runs[s.index()] = run_stage(graph, program, inputs, labels, crossing);
    for (std::size_t i = 0; i < program.outputs.size(); ++i) {
      const ValueId value = program.outputs[i].value;
      const MemoryOrder& order = program.at(value).order;
      crossing[value] =
          from_memory_order(to_memory_order(runs[s.index()].result.outputs[i], order), order);
    }
  }
  return runs;
}

}  // namespace stagecraft
