/// parameter_gradients returns the gradient of a loss for each parameter as values. It does not
/// change any `.grad`.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft {

/// Returns one gradient per parameter, undefined if none arrives. Frees the loss's graph.
/// Errors: LibTorch's own, and exceptions of hooks and custom functions.
[[nodiscard]] std::vector<at::Tensor> parameter_gradients(
    const at::Tensor& loss, const std::vector<at::Tensor>& parameters);

}  // namespace stagecraft
