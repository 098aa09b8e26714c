/// gradient_norm computes the norms of parameters' gradients, for the vote.
///
/// GN-1: on the CPU, squares are added in double precision, in blocks of kNormBlock elements
///       counted from the first element, and the blocks in their order. The bits depend neither on
///       the gradient's place in a buffer nor on LibTorch's thread count. An accelerator adds in
///       double precision, in its own order.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft {

constexpr std::int64_t kNormBlock = 32768;

/// Returns the squared norm of `sum` / `weight`, which it reads once. Not finite if an element is
/// not, or if the square exceeds the arithmetic of the type (float, for half types too): an
/// optimizer that keeps squares would never recover from it.
/// Requires: a contiguous tensor of a floating or complex type.
[[nodiscard]] double squared_norm_of_mean(const at::Tensor& sum, double weight);

/// Returns it for each of several tensors of one device. The host waits for an accelerator once.
[[nodiscard]] std::vector<double> squared_norms_of_means(const std::vector<at::Tensor>& sums,
                                                         double weight);

}  // namespace stagecraft
