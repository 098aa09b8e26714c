#include "stagecraft/actors/executor/run/task_runner.h"

#include <cstdint>
#include <optional>
#include <utility>

#include <ATen/TensorOperators.h>

#include "stagecraft/actors/executor/run/regrouped.h"
#include "stagecraft/compiler/libtorch/memory_order.h"

namespace stagecraft {
namespace {

/// Returns what autograd keeps while a backward, or its first half, replays the stage's chunks.
std::int64_t bytes_with_replay(const StageProgram& stage, CellKind kind) {
  const bool till_weights = kind == CellKind::BackwardInput;
  return stage.saved_bytes + (till_weights ? stage.replayed_bytes() : stage.largest_replay());
}

}  // namespace

void TaskRunner::run(const BoundInstruction& bound) {
  if (bound.instruction->task.kind == CellKind::Forward) {
    forward(bound);
  } else if (!bound.instruction->does_nothing()) {
    backward(bound);
  }
}

void TaskRunner::forward(const BoundInstruction& bound) {
  const auto computing = times_.compute(&RankTimes::forward);
  const LoadedShape& shape = step_.shape(bound.microbatch);
  const StageRuntime& stage = shape.stages[bound.stage];
  SavedStage fresh;
  SavedStage& saved = bound.begins ? fresh : slots_.saved(bound.saved);
  std::optional<CountingScope> counting;
  if (step_.trains()) {
    counting.emplace(step_.counts);
  }
  StageForward made = stage.forward(bound.instruction->chunks,
                                    inputs(bound),
                                    bound.keeps_graphs,
                                    random_key(bound, shape),
                                    saved);
  counting.reset();
  keep(bound, stage, made.outputs);
  for (std::size_t i = 0; i < made.outputs.size(); ++i) {
    if (bound.outputs[i].value >= 0) {
      slots_.put(bound.outputs[i], std::move(made.outputs[i]));
    }
  }
  if (made.loss.defined()) {
    step_.losses.add(bound.microbatch, std::move(made.loss));
  }
  if (bound.saved.value >= 0 && bound.begins) {
    slots_.put(bound.saved, std::move(fresh), bound.keeps_graphs ? stage.program->saved_bytes : 0);
  }
}

/// Keeps the module's outputs that stay on the rank. One in the memory of a parameter or buffer is
/// copied, because the next update writes there.
void TaskRunner::keep(const BoundInstruction& bound,
                      const StageRuntime& stage,
                      const std::vector<at::Tensor>& outputs) {
  for (std::size_t i = 0; i < outputs.size() && step_.trains(); ++i) {
    for (const std::int32_t number : stage.program->outputs[i].kept) {
      if (outputs[i].defined()) {
        const MemoryOrder& order = stage.program->at(stage.program->outputs[i].value).order;
        step_.kept.insert_or_assign(
            {number, bound.microbatch},
            from_memory_order(stage.shares_state(outputs[i]) ? outputs[i].clone() : outputs[i],
                              order));
      }
    }
  }
}

void TaskRunner::backward(const BoundInstruction& bound) {
  const auto computing = times_.compute(&RankTimes::backward);
  const CellKind kind = bound.instruction->task.kind;
  const StageRuntime& stage = step_.shape(bound.microbatch).stages[bound.stage];
  SavedStage& saved = slots_.saved(bound.saved);
  if (stage.program->recomputes() && !saved.input_half_done()) {
    slots_.now_keeps(bound.saved, bytes_with_replay(*stage.program, kind));
  }
  StageGradients made = stage.backward(
      kind,
      bound.instruction->chunks,
      saved,
      output_gradients(bound),
      bound.is_accumulated_next ? std::optional(step_.sum_weight(bound.microbatch)) : std::nullopt,
      step_.loss_factor(bound.microbatch));
  for (std::size_t i = 0; i < made.inputs.size(); ++i) {
    slots_.put(bound.input_gradients[i], std::move(made.inputs[i]));
  }
  if (bound.parameter_gradients.value >= 0) {
    slots_.put(bound.parameter_gradients, std::move(made.parameters));
  }
}

void TaskRunner::accumulate(const BoundInstruction& bound) {
  const auto computing = times_.compute(&RankTimes::backward);
  StageRuntime& stage = trained_[bound.stage];
  const std::vector<at::Tensor>& gradients = slots_.parameter_gradients(bound.slot);
  const double weight = step_.sum_weight(bound.microbatch);
  if (bound.instruction->chunks == stage.whole()) {
    stage.buckets.accumulate(gradients, weight);
  } else {
    stage.buckets.accumulate(stage.completed_in(bound.instruction->chunks), gradients, weight);
  }
}

void TaskRunner::regroup(const BoundInstruction& bound) {
  const bool of_forward = bound.instruction->task.kind == CellKind::Forward;
  const auto computing = times_.compute(of_forward ? &RankTimes::forward : &RankTimes::backward);
  slots_.put(bound.slot, regrouped(inputs(bound), bound.instruction->rows));
}

std::vector<at::Tensor> TaskRunner::inputs(const BoundInstruction& bound) const {
  std::vector<at::Tensor> tensors;
  tensors.reserve(bound.inputs.size());
  for (const SlotId slot : bound.inputs) {
    tensors.push_back(slot.value < 0 ? at::Tensor() : slots_.tensor(slot));
  }
  return tensors;
}

/// Returns, per output, the sum of its consumers' gradients, in the order in which they are bound.
std::vector<at::Tensor> TaskRunner::output_gradients(const BoundInstruction& bound) const {
  std::vector<at::Tensor> gradients(bound.output_gradients.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    for (const SlotId slot : bound.output_gradients[i]) {
      const at::Tensor& gradient = slots_.tensor(slot);
      gradients[i] = gradients[i].defined() ? gradients[i] + gradient : gradient;
    }
  }
  return gradients;
}

/// Keeps AC-2. An evaluation draws as if it were alone.
RandomKey TaskRunner::random_key(const BoundInstruction& bound, const LoadedShape& shape) const {
  const StepOrder& order = step_.order;
  const std::int64_t before =
      step_.trains() ? std::int64_t{order.accumulated} * step_.microbatches : 0;
  return {.seed = order.seed,
          .step = order.step.value,
          .microbatch = bound.microbatch.value + before,
          .shape = shape.received.random};
}

}  // namespace stagecraft
