#include "stagecraft/actors/executor/stage_runtime.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/actors/executor/backward.h"
#include "stagecraft/actors/executor/state_names.h"
#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Later chunks come first: the order in which one process adds (RE-1).
void add(at::Tensor& sum, const at::Tensor& gradient) {
  if (gradient.defined()) {
    sum = sum.defined() ? sum + gradient : gradient;
  }
}

template <class T>
std::size_t position_of(const std::vector<T>& all, ValueId value) {
  return static_cast<std::size_t>(std::ranges::find(all, value, &T::value) - all.begin());
}

}  // namespace

StageRuntime::StageRuntime(const StageProgram& stage, const Optimizer& optimizer)
    : program(&stage), bucket(stage, optimizer) {
  state.parameters = bucket.parameters();
  for (const StageBuffer& buffer : stage.buffers) {
    const Value& facts = stage.at(buffer.value);
    state.buffers.push_back(
        at::empty_strided(facts.sizes, buffer.strides, at::TensorOptions(facts.dtype)).zero_());
  }
  for (const Chunk& chunk : stage.chunks) {
    chunks.push_back(bound(chunk));
  }
}

StageRuntime::StageRuntime(const StageProgram& variant, const StageRuntime& of)
    : program(&variant), bucket(of.bucket), state(of.state) {
  for (const Chunk& chunk : variant.chunks) {
    chunks.push_back(bound(chunk));
  }
}

StageRuntime::BoundChunk StageRuntime::bound(const Chunk& chunk) const {
  BoundChunk result{.interpreter = ChunkInterpreter(*program, chunk),
                    .inputs = {},
                    .outputs = {},
                    .parameters = {},
                    .gradient_edges = {}};
  for (const ValueId value : chunk.inputs) {
    BoundChunk::Source source{.chunk = std::nullopt,
                              .position = position_of(program->inputs, value)};
    for (std::size_t c = 0; source.position == program->inputs.size() && c < chunks.size(); ++c) {
      const std::vector<ValueId>& made = program->chunks[c].outputs;
      const auto found = std::ranges::find(made, value);
      if (found != made.end()) {
        source = {c, static_cast<std::size_t>(found - made.begin())};
      }
    }
    SC_CHECK(source.chunk || source.position < program->inputs.size(),
             "what a chunk reads is an input of its stage or made before");
    result.inputs.push_back(source);
  }
  for (const ValueId value : chunk.outputs) {
    const std::size_t position = position_of(program->outputs, value);
    result.outputs.push_back(position < program->outputs.size() ? std::optional(position)
                                                                : std::nullopt);
  }
  std::set<ValueId> reads;
  for (const Node& node : chunk.nodes) {
    const std::vector<ValueId> values = reads_of(node);
    reads.insert(values.begin(), values.end());
  }
  std::size_t trained = 0;
  for (const StageParameter& parameter : program->parameters) {
    if (!parameter.trained) {
      continue;
    }
    if (reads.contains(parameter.value)) {
      result.parameters.push_back(trained);
      result.gradient_edges.push_back(bucket.gradient_edges()[trained]);
    }
    ++trained;
  }
  return result;
}

void StageRuntime::load(const std::vector<NamedTensor>& given) {
  const at::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> living;
  std::vector<NamedTensor> all;
  append_state(all);
  for (const auto& [name, tensor] : all) {
    living[name] = tensor;
  }
  for (const auto& [name, tensor] : given) {
    if (const auto found = living.find(name); found != living.end()) {
      found->second.copy_(tensor);
    }
  }
}

StageForward StageRuntime::forward(const Tensors& inputs,
                                   bool keeps_graphs,
                                   const RandomKey& key) const {
  const at::AutoGradMode grad(keeps_graphs);
  StageForward made;
  made.outputs.resize(program->outputs.size());
  std::vector<Tensors> between(chunks.size() - 1);  // what each but the last made, with its graph
  made.saved.reserve(keeps_graphs ? chunks.size() : 0);
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const BoundChunk& chunk = chunks[c];
    Saved saved;
    Tensors arguments;
    arguments.reserve(chunk.inputs.size());
    for (std::size_t i = 0; i < chunk.inputs.size(); ++i) {
      const auto& [from, position] = chunk.inputs[i];
      const at::Tensor& given = from ? between[*from][position] : inputs[position];
      const bool owes = from ? given.requires_grad() : program->inputs[position].owes_gradient;
      at::Tensor argument = given.detach();
      if (keeps_graphs && owes) {
        argument.requires_grad_();
        saved.leaves.push_back(argument);
        saved.leaf_of.push_back(i);
      }
      arguments.push_back(std::move(argument));
    }
    ChunkResult result = chunk.interpreter.run(arguments, state, key);
    for (std::size_t i = 0; i < result.outputs.size(); ++i) {
      if (chunk.outputs[i]) {
        made.outputs[*chunk.outputs[i]] = result.outputs[i].detach();
      }
    }
    if (result.loss.defined()) {
      made.loss = result.loss.detach();
    }
    if (c + 1 < chunks.size()) {
      between[c] = result.outputs;
    }
    if (keeps_graphs) {
      saved.outputs = std::move(result.outputs);
      saved.loss = std::move(result.loss);
      made.saved.push_back(std::move(saved));
    }
  }
  return made;
}

Tensors StageRuntime::weight_half(SavedStage& saved) const {
  Tensors sums(bucket.gradient_edges().size());
  for (std::size_t c = chunks.size(); c-- > 0;) {
    const Tensors of_chunk = backward_weight(saved[c], chunks[c].gradient_edges);
    for (std::size_t p = 0; p < of_chunk.size(); ++p) {
      add(sums[chunks[c].parameters[p]], of_chunk[p]);
    }
  }
  return sums;
}

StageGradients StageRuntime::backward(CellKind kind,
                                      SavedStage& saved,
                                      const Tensors& output_gradients) const {
  if (saved.front().input_half_done) {
    return {.inputs = {}, .parameters = weight_half(saved)};
  }
  const bool halves = kind == CellKind::BackwardInput;
  std::vector<Tensors> between(chunks.size());  // per output of each chunk
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    between[c].reserve(chunks[c].outputs.size());
    for (const auto& output : chunks[c].outputs) {
      between[c].push_back(output ? output_gradients[*output] : at::Tensor());
    }
  }
  Tensors inputs(program->inputs.size());
  Tensors parameters(halves ? 0 : bucket.gradient_edges().size());
  for (std::size_t c = chunks.size(); c-- > 0;) {
    const BoundChunk& chunk = chunks[c];
    const std::vector<std::size_t> leaf_of = std::move(saved[c].leaf_of);
    Gradients made;
    if (halves) {
      made.inputs = backward_input(saved[c], between[c], chunk.gradient_edges);
    } else {  // B, or W where I does nothing
      made = stagecraft::backward(saved[c], between[c], chunk.gradient_edges);
    }
    for (std::size_t p = 0; p < made.parameters.size(); ++p) {
      add(parameters[chunk.parameters[p]], made.parameters[p]);
    }
    for (std::size_t i = 0; i < made.inputs.size(); ++i) {
      const auto& [from, position] = chunk.inputs[leaf_of[i]];
      if (made.inputs[i].defined()) {
        add(from ? between[*from][position] : inputs[position], made.inputs[i].contiguous());
      }
    }
  }
  StageGradients result{.inputs = {}, .parameters = std::move(parameters)};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (program->inputs[i].owes_gradient) {
      const Value& facts = program->at(program->inputs[i].value);
      result.inputs.push_back(inputs[i].defined()
                                  ? inputs[i].contiguous()
                                  : at::zeros(facts.sizes, at::TensorOptions(facts.dtype)));
    }
  }
  return result;
}

std::optional<std::string> StageRuntime::name_of_parameter(std::int64_t position) const {
  const auto found = std::ranges::find(program->parameters, position, &StageParameter::position);
  return found == program->parameters.end() ? std::nullopt : std::optional(found->name);
}

void StageRuntime::append_state(std::vector<NamedTensor>& all) const {
  for (NamedTensor& n : bucket.state()) {
    all.push_back(std::move(n));
  }
  for (std::size_t b = 0; b < program->buffers.size(); ++b) {
    all.push_back({state_name(kBuffer, program->buffers[b].name), state.buffers[b]});
  }
}

std::vector<NamedTensor> initial_state(const Graph& graph) {
  std::vector<NamedTensor> state;
  for (const auto& [name, tensor] : graph.parameters) {
    state.push_back({state_name(kWeight, name), tensor.detach()});
  }
  for (const auto& [name, tensor] : graph.buffers) {
    state.push_back({state_name(kBuffer, name), tensor.detach()});
  }
  return state;
}

}  // namespace stagecraft
