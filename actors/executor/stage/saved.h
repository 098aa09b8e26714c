/// Saved holds the values that a forward leaves for its backward.
///
/// StageRuntime::forward makes it, a slot keeps it, the backward consumes it.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include "stagecraft/compiler/libtorch/random.h"

namespace stagecraft {

/// ReplaySource holds the values from which a recomputed chunk is replayed.
struct ReplaySource {
  std::vector<at::Tensor> inputs;   ///< of the chunk; leaves if they owe a gradient
  std::vector<at::Tensor> buffers;  ///< as before the forward: a copy of each that it writes
  RandomKey key;
  bool makes_loss = false;
};

/// Saved holds the saved values of one chunk.
struct Saved {
  std::vector<at::Tensor> leaves;    ///< the inputs that owe a gradient, in order
  std::vector<std::size_t> leaf_of;  ///< for each leaf, its position among the chunk's inputs
  std::vector<at::Tensor> outputs;   ///< with their graphs, in the order of the chunk's outputs
  at::Tensor loss;                   ///< undefined if another chunk computes it
  /// For a recomputed chunk, replaces `outputs` and `loss` until they are computed again.
  std::optional<ReplaySource> replay;
  // The next fields are set after the input half of a split backward: the start of the weight half,
  // and its gradients.
  bool input_half_done = false;
  std::vector<torch::autograd::Edge> frontier;
  std::vector<at::Tensor> frontier_gradients;
};

/// SavedStage holds the values of a stage and microbatch between its instructions: the values that
/// chunks hand to later chunks, and those that forwards leave for backwards.
struct SavedStage {
  using Tensors = std::vector<at::Tensor>;

  std::vector<Saved> chunks;  ///< of those that have run, in order; empty if no graphs are kept
  // The next fields are set between two parts of a forward.
  Tensors inputs;                ///< of the stage, as far as given
  std::vector<Tensors> outputs;  ///< of each chunk, for later ones
  /// Holds, by divided chunk, the inputs that an exchange has brought for the forward. Later it
  /// holds the gradients of inputs that the backward has made, until an exchange returns them.
  std::vector<Tensors> exchanged;
  // The next fields are set between two parts of a backward: sums of gradients so far.
  std::vector<Tensors> output_gradients;  ///< of each chunk's outputs
  Tensors input_gradients;                ///< of the stage's inputs
  Tensors parameter_gradients;            ///< of the trained parameters

  [[nodiscard]] bool input_half_done() const {
    return !chunks.empty() && chunks.front().input_half_done;
  }
};

}  // namespace stagecraft
