/// Backward of one stage and microbatch: whole, or split into the part others wait for and the part
/// nobody does.
///
/// Gradients come back as values (LibTorch's engine with the edges as outputs); `.grad` is never
/// touched. Summation orders are the engine's own, so a split or a cut changes no bit. To sums that
/// other chunks have begun a backward adds as the engine would in one run: what is there comes
/// first. A kernel that cannot leave out its node's first gradient makes it in both halves.
/// Source of the split: Qi et al., "Zero bubble pipeline parallelism", ICLR 2024.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include "stagecraft/actors/executor/saved.h"

namespace stagecraft {

struct Gradients {
  std::vector<at::Tensor> inputs;      ///< per leaf
  std::vector<at::Tensor> parameters;  ///< per edge
};

/// The whole backward; frees the graph. `output_gradients` per output, undefined where nobody sends
/// one. `so_far`: the sums to add to, undefined or empty where there are none.
[[nodiscard]] Gradients backward(Saved& saved,
                                 const std::vector<at::Tensor>& output_gradients,
                                 const std::vector<torch::autograd::Edge>& parameters,
                                 const Gradients& so_far = {});

/// The half that other stages wait for: gradients of the inputs. Afterwards what only it needed is
/// freed. A stage without such inputs leaves everything to the weight half.
[[nodiscard]] std::vector<at::Tensor> backward_input(
    Saved& saved,
    const std::vector<at::Tensor>& output_gradients,
    const std::vector<torch::autograd::Edge>& parameters,
    const std::vector<at::Tensor>& so_far = {});

/// The other half: gradients of the parameters.
[[nodiscard]] std::vector<at::Tensor> backward_weight(
    Saved& saved,
    const std::vector<torch::autograd::Edge>& parameters,
    const std::vector<at::Tensor>& so_far = {});

}  // namespace stagecraft
