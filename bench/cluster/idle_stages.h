/// IdleStages is a model whose stages do nothing, for benchmarks of the work around them.
#pragma once

#include <string>

#include <torch/torch.h>

#include "stagecraft/stagecraft.h"

namespace stagecraft::bench {

/// Every stage passes its input on. The first one owns one number, so that gradients flow all the
/// way back. Shapes: [batch, 1] to the same.
struct IdleStages : torch::nn::Module {
  int stages;
  torch::Tensor one;
  explicit IdleStages(int s) : stages(s) { one = register_parameter("one", torch::ones({1})); }
  torch::Tensor forward(torch::Tensor x) {
    for (int s = 0; s < stages; ++s) {
      x = stage("s" + std::to_string(s), [&] { return s == 0 ? x * one : x.view_as(x); });
    }
    return x;
  }
};

/// Compiles the model for a batch of one row per microbatch. The loss is the sum of differences.
[[nodiscard]] inline Program compile_idle_stages(int stages, int microbatches) {
  IdleStages module(stages);
  const auto x = torch::ones({microbatches, 1});
  const auto loss = [](torch::Tensor output, torch::Tensor label) {
    return (output - label).sum();
  };
  return compile(module,
                 {.inputs = {x}, .labels = {x}, .loss = loss, .microbatches = microbatches});
}

}  // namespace stagecraft::bench
