#include "stagecraft/bench/step/stage_alone.h"

#include <utility>
#include <vector>

#include <torch/torch.h>

#include "stagecraft/actors/executor/stage/backward.h"
#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/base/median.h"
#include "stagecraft/bench/seconds_of.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/stagecraft.h"

namespace stagecraft::bench {
namespace {

using Tensors = std::vector<torch::Tensor>;

// The first repetitions meet cold caches and new pages.
constexpr int kWarmUpSteps = 3;

Tensors inputs_of(const StageProgram& stage, const Tensors& inputs, const Tensors& labels) {
  Tensors all;
  for (const StageInput& input : stage.inputs) {
    const auto position = static_cast<std::size_t>(input.position);
    const Value& value = stage.at(input.value);
    all.push_back(input.source == StageInput::Source::Model   ? inputs[position]
                  : input.source == StageInput::Source::Label ? labels[position]
                                                              : torch::randn(value.sizes));
  }
  return all;
}

}  // namespace

StageTimes time_stage(const Program& program,
                      const StageProgram& stage,
                      const Tensors& model_inputs,
                      const Tensors& labels,
                      int repetitions) {
  const Optimizer optimizer = AdamW{.lr = 0.0};
  StageRuntime runtime(stage, optimizer);
  runtime.load(initial_state(program.compiled().graph));
  StageBuckets& bucket = runtime.buckets;
  const Tensors inputs = inputs_of(stage, model_inputs, labels);
  std::vector<double> forward, backward, update;
  for (int repetition = -kWarmUpSteps; repetition < repetitions; ++repetition) {
    Saved saved;
    Tensors arguments, gradients;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      arguments.push_back(stage.inputs[i].owes_gradient ? inputs[i].detach().requires_grad_()
                                                        : inputs[i]);
      if (stage.inputs[i].owes_gradient) {
        saved.leaves.push_back(arguments.back());
      }
    }
    forward.push_back(seconds_of([&] {
      ChunkResult result = runtime.chunks.front().interpreter.run(arguments, runtime.state, {});
      saved.outputs = std::move(result.outputs);
      saved.loss = std::move(result.loss);
    }));
    for (const torch::Tensor& output : saved.outputs) {
      gradients.push_back(torch::randn_like(output) * 1e-3);
    }
    backward.push_back(seconds_of([&] {
      bucket.accumulate(stagecraft::backward(saved, gradients, bucket.gradient_edges()).parameters);
      saved = {};
    }));
    update.push_back(seconds_of([&] {
      (void)bucket.squared_norms(1.0);
      bucket.update(0.0, {}, {.run = kWarmUpSteps + repetition + 1, .groups = {}});
    }));
    if (repetition < 0) {
      forward.clear();
      backward.clear();
      update.clear();
    }
  }
  return {median(forward), median(backward), median(update)};
}

}  // namespace stagecraft::bench
