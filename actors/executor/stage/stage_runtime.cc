#include "stagecraft/actors/executor/stage/stage_runtime.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/variable.h>

#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/actors/executor/stage/backward.h"
#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

using Tensors = std::vector<at::Tensor>;

template <class T>
std::size_t position_of(const std::vector<T>& all, ValueId value) {
  return static_cast<std::size_t>(std::ranges::find(all, value, &T::value) - all.begin());
}

/// Returns the place of the model's parameter or buffer `position` in the list.
template <class T>
std::size_t place_of(const std::vector<T>& all, int position) {
  const auto found = std::ranges::find(all, position, &T::position);
  SC_CHECK(found != all.end(), "a stage has the same parameters and buffers in every capture");
  return static_cast<std::size_t>(found - all.begin());
}

/// Returns the memory order in which a value crosses at an input or output of the stage.
const MemoryOrder& order_of(const StageProgram& stage, const auto& border) {
  return stage.at(border.value).order;
}

/// Returns the result of a forward without its graph; requires_grad stays.
at::Tensor without_graph(const at::Tensor& made) {
  return made.detach().requires_grad_(made.requires_grad());
}

/// Returns a tensor of these sizes without values, with the result's place in the graph. A backward
/// needs no more, and the result's memory is free until then.
at::Tensor place_in_graph(const at::Tensor& made, at::IntArrayRef sizes) {
  at::Tensor place;
  if (made.requires_grad()) {
    place = at::empty(sizes, made.options());
    torch::autograd::impl::set_gradient_edge(place, torch::autograd::impl::gradient_edge(made));
  }
  return place;
}

/// Returns whether the loss lies in larger memory. LibTorch reduces some losses in place, and
/// returns a number in the memory of all elements.
bool holds_more(const at::Tensor& loss) {
  return loss.storage().nbytes() > loss.nbytes();
}

}  // namespace

StageRuntime::StageRuntime(const StageProgram& stage,
                           const Optimizer& optimizer,
                           const BucketOptions& options,
                           const std::vector<BucketCut>& bucket_cuts)
    : program(&stage), device(options.device), buckets(stage, optimizer, options, bucket_cuts) {
  state.parameters = buckets.parameters();
  for (const StageBuffer& buffer : stage.buffers) {
    const Value& facts = stage.at(buffer.value);
    const at::TensorOptions kind = at::TensorOptions(facts.dtype).device(device);
    state.buffers.push_back(at::empty_strided(facts.sizes, buffer.strides, kind).zero_());
  }
  for (const Chunk& chunk : stage.chunks) {
    chunks.push_back(bound(chunk));
  }
  find_last_reads();
}

StageRuntime::StageRuntime(const StageProgram& shape, const StageRuntime& of)
    : program(&shape), device(of.device), buckets(of.buckets) {
  // Evaluations use the weights of all ranks.
  const bool divided = std::ranges::any_of(shape.chunks, &Chunk::divided);
  const Tensors& parameters = divided ? of.state.parameters : of.buckets.whole_parameters();
  for (const StageParameter& parameter : shape.parameters) {
    state.parameters.push_back(parameters[place_of(of.program->parameters, parameter.position)]);
  }
  for (const StageBuffer& buffer : shape.buffers) {
    state.buffers.push_back(of.state.buffers[place_of(of.program->buffers, buffer.position)]);
  }
  for (const Chunk& chunk : shape.chunks) {
    chunks.push_back(bound(chunk));
  }
  find_last_reads();
}

StageRuntime::BoundChunk StageRuntime::bound(const Chunk& chunk) const {
  BoundChunk result{
      .interpreter = ChunkInterpreter(*program, chunk, device),
      .inputs = {},
      .outputs = {},
      .last_reads = {},
      .parameters = {},
      .recompute = chunk.recompute,
      .divided = chunk.divided && buckets.divides_chunk(static_cast<std::int32_t>(chunks.size())),
      .written_buffers = {},
      .gradient_edges = {},
      .completes = {},
      .completes_inputs = {}};
  for (const ValueId value : chunk.inputs) {
    // If several chunks pass a value on, each has written to the result of the one before: take the
    // last.
    BoundChunk::Source source{.chunk = std::nullopt,
                              .position = position_of(program->inputs, value)};
    for (std::size_t c = chunks.size(); !source.chunk && c-- > 0;) {
      const std::vector<ValueId>& made = program->chunks[c].outputs;
      const auto found = std::ranges::find(made, value);
      if (found != made.end()) {
        source = {c, static_cast<std::size_t>(found - made.begin())};
      }
    }
    SC_CHECK(source.chunk || source.position < program->inputs.size(),
             "a chunk reads inputs of its stage and results of earlier chunks");
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
      result.gradient_edges.push_back(buckets.gradient_edges()[trained]);
    }
    ++trained;
  }
  const auto number = static_cast<int>(chunks.size());
  const std::vector<int> completing = completing_chunks(*program);
  for (std::size_t p = 0; p < completing.size(); ++p) {
    if (completing[p] == number) {
      result.completes.push_back(p);
    }
  }
  for (std::size_t i = 0; i < program->inputs.size(); ++i) {
    if (first_reader(*program, program->inputs[i].value) == number) {
      result.completes_inputs.push_back(i);
    }
  }
  for (std::size_t b = 0; b < program->buffers.size(); ++b) {
    if (program->buffers[b].written && reads.contains(program->buffers[b].value)) {
      result.written_buffers.push_back(b);
    }
  }
  return result;
}

void StageRuntime::find_last_reads() {
  std::set<std::pair<std::size_t, std::size_t>> read_later;
  for (std::size_t c = chunks.size(); c-- > 0;) {
    for (const BoundChunk::Source& input : chunks[c].inputs) {
      if (input.chunk && read_later.emplace(*input.chunk, input.position).second) {
        chunks[c].last_reads.push_back(input);
      }
    }
    for (std::size_t o = 0; o < chunks[c].outputs.size(); ++o) {
      if (!read_later.contains({c, o})) {
        chunks[c].last_reads.push_back({c, o});
      }
    }
  }
}

void StageRuntime::load(const std::vector<NamedTensor>& given) {
  const at::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> living;
  std::vector<NamedTensor> all;
  append_state(all);
  for (const auto& [name, tensor] : all) {
    living[name] = tensor;
  }
  std::set<std::string> loaded;
  for (const auto& [name, tensor] : given) {
    if (const auto found = living.find(name); found != living.end()) {
      found->second.copy_(tensor);
      loaded.insert(name);
    }
  }
  buckets.follow_loaded(loaded);
}

StageForward StageRuntime::forward(const ChunkRange& range,
                                   const Tensors& inputs,
                                   bool keeps_graphs,
                                   const RandomKey& key,
                                   SavedStage& kept,
                                   ChunkWatch* watch) const {
  const at::AutoGradMode grad(keeps_graphs);
  StageForward made;
  made.outputs.resize(program->outputs.size());
  kept.inputs.resize(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    kept.inputs[i] = inputs[i].defined() ? inputs[i] : kept.inputs[i];
  }
  kept.outputs.resize(chunks.size());
  kept.chunks.reserve(keeps_graphs ? chunks.size() : 0);
  for (auto c = static_cast<std::size_t>(range.first); c < static_cast<std::size_t>(range.end());
       ++c) {
    const BoundChunk& chunk = chunks[c];
    Saved saved;
    Tensors arguments;
    arguments.reserve(chunk.inputs.size());
    for (std::size_t i = 0; i < chunk.inputs.size(); ++i) {
      const auto& [from, position] = chunk.inputs[i];
      const at::Tensor given =
          chunk.divided ? kept.exchanged[c][i]
          : from        ? kept.outputs[*from][position]
                        : from_memory_order(kept.inputs[position],
                                     order_of(*program, program->inputs[position]));
      const bool owes = from ? given.requires_grad() : program->inputs[position].owes_gradient;
      at::Tensor argument = given.detach();
      if (keeps_graphs && owes) {
        argument.requires_grad_();
        saved.leaves.push_back(argument);
        saved.leaf_of.push_back(i);
      }
      arguments.push_back(std::move(argument));
    }
    if (chunk.divided) {
      kept.exchanged[c].clear();
    }
    Tensors buffers;
    if (keeps_graphs && chunk.recompute) {
      for (const std::size_t b : chunk.written_buffers) {
        buffers.push_back(state.buffers[b].clone());
      }
    }
    // A recomputed chunk runs with gradients too, because operators choose their kernels by it. All
    // that it makes beside its outputs is freed at once.
    ChunkResult result = chunk.interpreter.run(arguments, state, key, watch);
    keep_lent_weights_out_of(result.outputs);
    for (std::size_t i = 0; i < result.outputs.size(); ++i) {
      if (chunk.outputs[i]) {
        made.outputs[*chunk.outputs[i]] =
            to_memory_order(result.outputs[i].detach(),
                            order_of(*program, program->outputs[*chunk.outputs[i]]));  // keeps SP-1
      }
    }
    if (result.loss.defined()) {
      made.loss = result.loss.detach();
      if (holds_more(made.loss)) {
        made.loss = made.loss.clone();
      }
    }
    if (keeps_graphs && chunk.recompute) {
      saved.replay = {.inputs = std::move(arguments),
                      .buffers = std::move(buffers),
                      .key = key,
                      .makes_loss = result.loss.defined()};
      std::ranges::transform(result.outputs, result.outputs.begin(), without_graph);
      kept.outputs[c] = std::move(result.outputs);
    } else {
      for (const at::Tensor& output : result.outputs) {
        saved.outputs.push_back(place_in_graph(output, {0}));
      }
      kept.outputs[c] = std::move(result.outputs);
      if (result.loss.defined()) {
        saved.loss = holds_more(result.loss) ? place_in_graph(result.loss, result.loss.sizes())
                                             : std::move(result.loss);
      }
    }
    if (keeps_graphs) {
      kept.chunks.push_back(std::move(saved));
      continue;
    }
    for (const auto& [from, position] : chunk.last_reads) {
      kept.outputs[*from][position].reset();
    }
  }
  if (range.end() == whole().end()) {
    kept.inputs.clear();
    kept.outputs.clear();
  }
  return made;
}

/// Replays a chunk (keeps CB-2).
void StageRuntime::replay(const BoundChunk& chunk, Saved& saved) const {
  const at::AutoGradMode grad(true);
  const ReplaySource& source = *saved.replay;
  StageState then = state;
  for (std::size_t i = 0; i < source.buffers.size(); ++i) {
    then.buffers[chunk.written_buffers[i]] = source.buffers[i];
  }
  ChunkResult result = chunk.interpreter.run(source.inputs, then, source.key);
  saved.outputs = std::move(result.outputs);
  saved.loss = std::move(result.loss);
}

/// Copies outputs in the memory of weights, if that memory may be given back before they are read.
void StageRuntime::keep_lent_weights_out_of(Tensors& outputs) const {
  if (!buckets.lends_any()) {
    return;
  }
  for (at::Tensor& output : outputs) {
    const auto lies_in = [&](const at::Tensor& weight) { return output.is_alias_of(weight); };
    if (output.defined() && std::ranges::any_of(state.parameters, lies_in)) {
      output = output.clone();
    }
  }
}

bool StageRuntime::shares_state(const at::Tensor& tensor) const {
  const auto shares = [&](const at::Tensor& other) { return tensor.is_alias_of(other); };
  return std::ranges::any_of(state.parameters, shares) ||
         std::ranges::any_of(state.buffers, shares);
}

std::vector<std::size_t> StageRuntime::completed_in(const ChunkRange& range) const {
  std::vector<std::size_t> completed;
  for (std::int32_t c = range.first; c < range.end(); ++c) {
    const std::vector<std::size_t>& here = chunks[static_cast<std::size_t>(c)].completes;
    completed.insert(completed.end(), here.begin(), here.end());
  }
  std::ranges::sort(completed);
  return completed;
}

/// Returns the gradients of parameters that are complete in the range.
Tensors StageRuntime::weight_half(const ChunkRange& range,
                                  SavedStage& saved,
                                  std::optional<double> accumulated) const {
  Tensors& sums = saved.parameter_gradients;
  sums.resize(buckets.gradient_edges().size());
  for (auto c = static_cast<std::size_t>(range.end());
       c-- > static_cast<std::size_t>(range.first);) {
    Tensors so_far;
    for (const std::size_t p : chunks[c].parameters) {
      so_far.push_back(std::move(sums[p]));
    }
    const auto taking = buckets.take(chunks[c].completes, accumulated);
    Tensors more = backward_weight(saved.chunks[c], chunks[c].gradient_edges, so_far);
    for (std::size_t p = 0; p < more.size(); ++p) {
      sums[chunks[c].parameters[p]] = std::move(more[p]);
    }
    saved.chunks[c] = {};
  }
  return finished_parameters(range, saved);
}

/// Returns the gradients of the trained parameters that are complete in the range, and undefined
/// tensors for the others.
Tensors StageRuntime::finished_parameters(const ChunkRange& range, SavedStage& saved) const {
  if (range == whole()) {
    return std::move(saved.parameter_gradients);
  }
  Tensors finished(saved.parameter_gradients.size());
  for (const std::size_t p : completed_in(range)) {
    finished[p] = std::move(saved.parameter_gradients[p]);
  }
  return finished;
}

/// Returns the gradients of the inputs that owe one and are complete in the range.
Tensors StageRuntime::finished_inputs(const ChunkRange& range, SavedStage& saved) const {
  Tensors finished;
  for (std::size_t i = 0; i < program->inputs.size(); ++i) {
    const bool here = std::any_of(
        chunks.begin() + range.first, chunks.begin() + range.end(), [&](const BoundChunk& chunk) {
          return std::ranges::find(chunk.completes_inputs, i) != chunk.completes_inputs.end();
        });
    if (!here || !program->inputs[i].owes_gradient) {
      continue;
    }
    const Value& facts = program->at(program->inputs[i].value);
    const at::Tensor sum = std::move(saved.input_gradients[i]);
    finished.push_back(sum.defined() ? to_memory_order(sum, facts.order)
                                     : at::zeros(sizes_in_order(facts.sizes, facts.order),
                                                 at::TensorOptions(facts.dtype).device(device)));
  }
  return finished;
}

StageGradients StageRuntime::backward(CellKind kind,
                                      const ChunkRange& range,
                                      SavedStage& saved,
                                      const Tensors& output_gradients,
                                      std::optional<double> accumulated,
                                      double loss_scale) const {
  if (kind == CellKind::BackwardWeight &&
      saved.chunks[static_cast<std::size_t>(range.first)].input_half_done) {
    return {.inputs = {}, .parameters = weight_half(range, saved, accumulated)};
  }
  const bool halves = kind == CellKind::BackwardInput;
  saved.output_gradients.resize(chunks.size());
  saved.input_gradients.resize(program->inputs.size());
  saved.parameter_gradients.resize(halves ? 0 : buckets.gradient_edges().size());
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    Tensors& sums = saved.output_gradients[c];
    sums.resize(chunks[c].outputs.size());
    for (std::size_t o = 0; o < sums.size(); ++o) {
      const auto& output = chunks[c].outputs[o];
      if (output && output_gradients[*output].defined()) {
        sums[o] = from_memory_order(output_gradients[*output],
                                    order_of(*program, program->outputs[*output]));
      }
    }
  }
  for (auto c = static_cast<std::size_t>(range.end());
       c-- > static_cast<std::size_t>(range.first);) {
    const BoundChunk& chunk = chunks[c];
    Saved& mine = saved.chunks[c];
    Tensors& sent = saved.output_gradients[c];
    if (chunk.divided) {
      saved.exchanged.resize(chunks.size());
      saved.exchanged[c].resize(chunk.inputs.size());
    }
    const auto sum_of = [&](std::size_t input) -> at::Tensor& {
      const auto& [from, position] = chunk.inputs[input];
      return chunk.divided ? saved.exchanged[c][input]
             : from        ? saved.output_gradients[*from][position]
                           : saved.input_gradients[position];
    };
    if (mine.replay &&
        (mine.replay->makes_loss || std::ranges::any_of(sent, &at::Tensor::defined))) {
      replay(chunk, mine);
    }
    mine.replay.reset();  // a chunk without a gradient is not replayed
    const std::vector<std::size_t> leaf_of = std::move(mine.leaf_of);
    Gradients made;
    for (const std::size_t input : leaf_of) {
      made.inputs.push_back(sum_of(input));
    }
    if (halves) {
      made.inputs = backward_input(mine, sent, chunk.gradient_edges, made.inputs, loss_scale);
    } else {  // B, or W without an I before it
      for (const std::size_t p : chunk.parameters) {
        made.parameters.push_back(std::move(saved.parameter_gradients[p]));
      }
      const auto taking = buckets.take(chunk.completes, accumulated);
      made = stagecraft::backward(mine, sent, chunk.gradient_edges, made, loss_scale);
      mine = {};
    }
    sent.clear();
    for (std::size_t p = 0; p < made.parameters.size(); ++p) {
      saved.parameter_gradients[chunk.parameters[p]] = std::move(made.parameters[p]);
    }
    for (std::size_t i = 0; i < made.inputs.size(); ++i) {
      sum_of(leaf_of[i]) = std::move(made.inputs[i]);
    }
  }
  return {.inputs = finished_inputs(range, saved),
          .parameters = halves ? Tensors() : finished_parameters(range, saved)};
}

Tensors& StageRuntime::exchanged(const Instruction& exchange, SavedStage& saved) const {
  const auto c = static_cast<std::size_t>(exchange.chunks.first);
  const bool forward = exchange.task.kind == CellKind::Forward;
  // A forward brings inputs and returns outputs; a backward brings gradients of outputs, and
  // returns those of inputs.
  if (forward == exchange.returns) {
    return forward ? saved.outputs[c] : saved.output_gradients[c];
  }
  saved.exchanged.resize(chunks.size());
  if (forward && saved.exchanged[c].empty()) {
    for (const auto& [from, position] : chunks[c].inputs) {
      saved.exchanged[c].push_back(saved.outputs[*from][position]);
    }
  }
  return saved.exchanged[c];
}

void StageRuntime::take_exchanged(const Instruction& exchange, SavedStage& saved) const {
  if (exchange.task.kind == CellKind::Forward || !exchange.returns) {
    return;
  }
  const auto c = static_cast<std::size_t>(exchange.chunks.first);
  for (std::size_t i = 0; i < saved.exchanged[c].size(); ++i) {
    const auto& [from, position] = chunks[c].inputs[i];
    const at::Tensor made = std::move(saved.exchanged[c][i]);
    at::Tensor& sum = saved.output_gradients[*from][position];
    if (made.defined()) {
      sum = sum.defined() ? sum + made : made;
    }
  }
  saved.exchanged[c].clear();
}

std::optional<std::string> StageRuntime::name_of_parameter(std::int64_t position) const {
  const auto found = std::ranges::find(program->parameters, position, &StageParameter::position);
  return found == program->parameters.end() ? std::nullopt : std::optional(found->name);
}

void StageRuntime::append_state(std::vector<NamedTensor>& all) const {
  for (NamedTensor& n : buckets.state()) {
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
