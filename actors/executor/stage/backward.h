/// backward runs the backward of one stage and microbatch: whole, or split into the half that other
/// stages wait for and the half that no stage waits for.
///
/// Gradients come back as values (LibTorch's engine with the edges as outputs); `.grad` stays
/// untouched. The engine decides all orders of summation, so a split or a cut changes no bit. A
/// backward adds to the sums of other chunks as the engine does in one run: the existing sum comes
/// first. A kernel that cannot leave out its node's first gradient computes it in both halves.
/// Source of the split: Qi et al., "Zero bubble pipeline parallelism", ICLR 2024.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include "stagecraft/actors/executor/stage/saved.h"

namespace stagecraft {

struct Gradients {
  std::vector<at::Tensor> inputs;      ///< per leaf
  std::vector<at::Tensor> parameters;  ///< per edge
};

/// Runs the whole backward and frees the graph. `output_gradients`: per output, undefined if no
/// stage sends one. `so_far`: the sums to add to, undefined or empty if there are none.
/// `loss_scale`: the factor of the loss.
[[nodiscard]] Gradients backward(Saved& saved,
                                 const std::vector<at::Tensor>& output_gradients,
                                 const std::vector<torch::autograd::Edge>& parameters,
                                 const Gradients& so_far = {},
                                 double loss_scale = 1.0);

/// Runs the half that other stages wait for: gradients of the inputs. Then frees the values that
/// only this half needed. For a stage without such inputs, the weight half does all the work.
[[nodiscard]] std::vector<at::Tensor> backward_input(
    Saved& saved,
    const std::vector<at::Tensor>& output_gradients,
    const std::vector<torch::autograd::Edge>& parameters,
    const std::vector<at::Tensor>& so_far = {},
    double loss_scale = 1.0);

/// Runs the other half: gradients of the parameters.
[[nodiscard]] std::vector<at::Tensor> backward_weight(
    Saved& saved,
    const std::vector<torch::autograd::Edge>& parameters,
    const std::vector<at::Tensor>& so_far = {});

}  // namespace stagecraft
