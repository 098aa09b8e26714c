#include "stagecraft/actors/executor/stage_runtime.h"

#include <algorithm>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include "stagecraft/actors/executor/backward.h"

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

StageForward StageRuntime::forward(const std::vector<at::Tensor>& inputs,
                                   bool keeps_graphs,
                                   const RandomKey& key) const {
  const at::AutoGradMode grad(keeps_graphs);
  Saved saved;
  std::vector<at::Tensor> arguments;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    at::Tensor argument = inputs[i].detach();
    if (keeps_graphs && program->inputs[i].owes_gradient) {
      argument.requires_grad_();
      saved.leaves.push_back(argument);
    }
    arguments.push_back(std::move(argument));
  }
  StageResult result = interpreter.run(arguments, state, key);
  StageForward made;
  for (const at::Tensor& output : result.outputs) {
    made.outputs.push_back(output.detach());
  }
  if (result.loss.defined()) {
    made.loss = result.loss.detach();
  }
  if (keeps_graphs) {
    saved.outputs = std::move(result.outputs);
    saved.loss = std::move(result.loss);
    made.saved.push_back(std::move(saved));
  }
  return made;
}

StageGradients StageRuntime::backward(CellKind kind,
                                      SavedStage& saved_stage,
                                      const std::vector<at::Tensor>& output_gradients) const {
  Saved& saved = saved_stage.front();
  const auto& edges = bucket.gradient_edges();
  if (saved.input_half_done) {
    return {.inputs = {}, .parameters = backward_weight(saved, edges)};
  }
  const std::vector<at::Tensor> leaves = saved.leaves;  // a half lets go of them
  StageGradients result;
  if (kind == CellKind::BackwardInput) {
    result.inputs = backward_input(saved, output_gradients, edges);
  } else {  // B, or W where I does nothing
    Gradients both = stagecraft::backward(saved, output_gradients, edges);
    result = {.inputs = std::move(both.inputs), .parameters = std::move(both.parameters)};
  }
  for (std::size_t i = 0; i < result.inputs.size(); ++i) {
    at::Tensor& gradient = result.inputs[i];
    gradient = gradient.defined() ? gradient.contiguous() : at::zeros_like(leaves[i]);
  }
  return result;
}

std::optional<std::string> StageRuntime::name_of_parameter(std::int64_t position) const {
  const auto found = std::ranges::find(program->parameters, position);
  return found == program->parameters.end()
             ? std::nullopt
             : std::optional(
                   bucket.names()[static_cast<std::size_t>(found - program->parameters.begin())]);
}

void StageRuntime::append_state(const CompiledProgram& compiled,
                                std::vector<NamedTensor>& all) const {
  for (NamedTensor& n : bucket.state()) {
    all.push_back(std::move(n));
  }
  for (std::size_t b = 0; b < program->buffers.size(); ++b) {
    const auto position = static_cast<std::size_t>(program->buffers[b]);
    all.push_back({"buffer:" + compiled.graph.buffers[position].name, state.buffers[b]});
  }
}

}  // namespace stagecraft
