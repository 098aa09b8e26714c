/// Saved: what a forward leaves for its backward.
///
/// Made by StageRuntime::forward, kept in a slot, used up by the backward.
#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

namespace stagecraft {

/// Of one chunk.
struct Saved {
  std::vector<at::Tensor> leaves;    ///< the inputs that owe a gradient, in order
  std::vector<std::size_t> leaf_of;  ///< which of the chunk's inputs each leaf is
  std::vector<at::Tensor> outputs;   ///< with their graphs, in the order of the chunk's outputs
  at::Tensor loss;                   ///< undefined where another chunk computes it
  // After the input half of a split backward: where the weight half starts, and with what.
  bool input_half_done = false;
  std::vector<torch::autograd::Edge> frontier;
  std::vector<at::Tensor> frontier_gradients;
};

/// Of a stage: one per chunk, in their order.
using SavedStage = std::vector<Saved>;

}  // namespace stagecraft
