/// The norm of one parameter's gradient, as the vote wants it.
///
/// GN-1: squares are added in double precision, block by block of kNormBlock elements counted from
///       the first, and the blocks in their order: the bits depend neither on where in a buffer a
///       gradient lies nor on how many threads LibTorch has.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace stagecraft {

constexpr std::int64_t kNormBlock = 32768;

/// The squared norm of `sum` / `weight`, read once. Not finite where an element is not, and where
/// the square is beyond the type's own arithmetic (float, for half types too): an optimizer that
/// keeps squares would never recover from it.
/// Requires: a contiguous tensor of a floating or complex type.
[[nodiscard]] double squared_norm_of_mean(const at::Tensor& sum, double weight);

}  // namespace stagecraft
