#include "stagecraft/actors/reference/sized_pass.h"

#include <numeric>

#include <ATen/TensorOperators.h>

#include "stagecraft/actors/executor/run/regrouped.h"
#include "stagecraft/compiler/libtorch/memory_order.h"
#include "stagecraft/scheduler/model/microbatch_range.h"

namespace stagecraft {
namespace {

using Tensors = std::vector<at::Tensor>;

}  // namespace

SizedPass::SizedPass(const CompiledProgram& program,
                     std::vector<StageRuntime>& stages,
                     const Parts& parts)
    : program_(&program), stages_(&stages), parts_(&parts) {}

std::vector<double> SizedPass::run(const RandomKey& first, double loss_scale) {
  int block = 1;
  for (const int size : program_->stage_graph.microbatch_sizes()) {
    block = std::lcm(block, size);
  }
  const auto for_each_microbatch = [&](StageId s, int begin, auto&& visit) {
    for (Microbatch m(begin / size_of(s)); m.value < (begin + block) / size_of(s); ++m.value) {
      visit(m);
    }
  };
  for (int begin = 0; begin < program_->microbatches; begin += block) {
    for (StageRuntime& stage : *stages_) {
      for_each_microbatch(stage.program->id, begin, [&](Microbatch m) {
        RandomKey key = first;
        key.microbatch += m.value;
        forward(stage, m, key);
      });
    }
    for (auto stage = stages_->rbegin(); stage != stages_->rend(); ++stage) {
      for_each_microbatch(
          stage->program->id, begin, [&](Microbatch m) { backward(*stage, m, loss_scale); });
    }
    activations_.clear();
    gradients_.clear();
  }
  return std::move(losses_);
}

void SizedPass::forward(const StageRuntime& stage, Microbatch m, const RandomKey& key) {
  const StageProgram& program = *stage.program;
  Tensors inputs;
  for (const StageInput& one : program.inputs) {
    inputs.push_back(input(one, program.id, m));
  }
  const bool trains = program_->stage_graph.has_backward(program.id);
  SavedStage saved;
  StageForward made = stage.forward(stage.whole(), inputs, trains, key, saved);
  for (std::size_t i = 0; i < made.outputs.size(); ++i) {
    activations_[program.outputs[i].value][m.value] = std::move(made.outputs[i]);
  }
  if (made.loss.defined()) {
    losses_.push_back(made.loss.item<double>());
  }
  if (trains) {
    saved_[{program.id, m}] = std::move(saved);
  }
}

at::Tensor SizedPass::input(const StageInput& input, StageId reader, Microbatch m) const {
  if (input.source == StageInput::Source::Stage) {
    return taken(activations_.at(input.value), input.from, reader, m);
  }
  const bool label = input.source == StageInput::Source::Label;
  const auto position = static_cast<std::size_t>(input.position);
  const std::vector<Tensors>& given = label ? parts_->labels : parts_->inputs;
  const BatchSlice& slice = (label ? program_->labels : program_->inputs)[position];
  if (slice.replicated) {
    return to_memory_order(given.front()[position], slice.order);
  }
  const auto [begin, end] = in_step(m, size_of(reader));
  Tensors rows;
  for (int part = begin; part < end; ++part) {
    rows.push_back(to_memory_order(given[static_cast<std::size_t>(part)][position], slice.order));
  }
  return regrouped(rows, std::vector<RowRange>(rows.size()));
}

/// Returns the rows of microbatch `m` of `reader` among the results of `maker`.
at::Tensor SizedPass::taken(const ByMicrobatch& made,
                            StageId maker,
                            StageId reader,
                            Microbatch m) const {
  const int size = size_of(maker);
  const MicrobatchRange wanted = in_step(m, size_of(reader));
  Tensors tensors;
  std::vector<RowRange> rows;
  const auto [begin, end] = overlapping(m, size_of(reader), size);
  for (Microbatch source(begin); source.value < end; ++source.value) {
    const MicrobatchRange whole = in_step(source, size);
    const MicrobatchRange part = shared(wanted, whole);
    tensors.push_back(made.at(source.value));
    rows.push_back({part.begin - whole.begin, part.end - part.begin, size});
  }
  return regrouped(tensors, rows);
}

void SizedPass::backward(StageRuntime& stage, Microbatch m, double loss_scale) {
  const StageProgram& program = *stage.program;
  const auto saved = saved_.find({program.id, m});
  if (saved == saved_.end()) {
    return;  // no backward
  }
  Tensors gradients;
  for (const StageOutput& output : program.outputs) {
    at::Tensor sum;
    for (std::size_t c = output.consumers.size(); c-- > 0;) {  // latest-created first
      if (output.gradient_from[c]) {
        const StageId consumer = output.consumers[c];
        const at::Tensor part =
            taken(gradients_.at({output.value, consumer}), consumer, program.id, m);
        sum = sum.defined() ? sum + part : part;
      }
    }
    gradients.push_back(sum);
  }
  StageGradients made = stage.backward(
      CellKind::Backward, stage.whole(), saved->second, gradients, std::nullopt, loss_scale);
  saved_.erase(saved);
  std::size_t next = 0;
  for (const StageInput& input : program.inputs) {
    if (input.owes_gradient) {
      gradients_[{input.value, program.id}][m.value] = std::move(made.inputs[next++]);
    }
  }
  if (program.trains()) {
    stage.buckets.accumulate(made.parameters, 1.0);
  }
}

}  // namespace stagecraft
