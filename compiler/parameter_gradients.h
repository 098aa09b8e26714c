/// parameter_gradients: the gradient of a loss for each parameter, as values; nobody's `.grad` is
/// touched.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft {

/// Returns one per parameter, undefined where none arrives. Frees the loss's graph.
/// Errors: LibTorch's own, and what hooks and custom functions throw.
[[nodiscard]] std::vector<at::Tensor> parameter_gradients(
    const at::Tensor& loss, const std::vector<at::Tensor>& parameters);

}  // namespace stagecraft
