/// TwoLayers is a module whose operators depend on the shape of its batch.
#pragma once

#include <utility>

#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/module/markers.h"

namespace stagecraft::testing {

inline torch::Tensor rows_of_four(int count) {
  torch::manual_seed(11);
  return torch::randn({count, 4});
}

/// Has two layers, with or without markers; a batch of few rows takes one operator more.
struct TwoLayers : torch::nn::Module {
  torch::nn::Linear a{register_module("a", torch::nn::Linear(4, 4))};
  torch::nn::Linear b{register_module("b", torch::nn::Linear(4, 4))};
  bool marked = false;

  torch::Tensor lower(const torch::Tensor& x) {
    const torch::Tensor y = torch::tanh(a(x));
    return x.size(0) < 3 ? torch::tanh(y) : y;
  }
  torch::Tensor forward(const torch::Tensor& x) {
    if (!marked) {
      return b(lower(x));
    }
    const torch::Tensor h = stage("lower", [&] { return lower(x); });
    return stage("upper", [&] { return b(h); });
  }
};

/// Labels have two rows for each of the inputs.
inline Program two_layers(TwoLayers& chain, int count, int microbatches, Cut cut = {}) {
  return compile(chain,
                 {.inputs = {rows_of_four(count)},
                  .labels = {rows_of_four(2 * count)},
                  .loss =
                      [](const torch::Tensor& out, const torch::Tensor& label) {
                        return (out.repeat_interleave(2, 0) - label).square().mean();
                      },
                  .microbatches = microbatches,
                  .cut = std::move(cut)});
}

}  // namespace stagecraft::testing
