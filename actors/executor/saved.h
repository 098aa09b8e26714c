/// Saved: what a forward leaves for its backward.
///
/// Made by StageRuntime::forward, kept in a slot, used up by the backward.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include "stagecraft/compiler/random.h"

namespace stagecraft {

/// What a chunk that is recomputed is replayed from.
struct ReplaySource {
  std::vector<at::Tensor> inputs;   ///< of the chunk; leaves where they owe a gradient
  std::vector<at::Tensor> buffers;  ///< as they were: a copy of each that a forward writes
  RandomKey key;
  bool makes_loss = false;
};

/// Of one chunk.
struct Saved {
  std::vector<at::Tensor> leaves;    ///< the inputs that owe a gradient, in order
  std::vector<std::size_t> leaf_of;  ///< which of the chunk's inputs each leaf is
  std::vector<at::Tensor> outputs;   ///< with their graphs, in the order of the chunk's outputs
  at::Tensor loss;                   ///< undefined where another chunk computes it
  /// Instead of the two above, until they are made again: of a chunk that is recomputed.
  std::optional<ReplaySource> replay;
  // After the input half of a split backward: where the weight half starts, and with what.
  bool input_half_done = false;
  std::vector<torch::autograd::Edge> frontier;
  std::vector<at::Tensor> frontier_gradients;
};

/// Of a stage: one per chunk, in their order.
using SavedStage = std::vector<Saved>;

}  // namespace stagecraft
