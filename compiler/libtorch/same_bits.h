/// same_bits compares two tensors to the bit, NaN included. Strides may differ.
#pragma once

#include <ATen/core/Tensor.h>

namespace stagecraft {

/// Returns whether the bits are equal; true also for two undefined tensors.
[[nodiscard]] bool same_bits(const at::Tensor& a, const at::Tensor& b);

}  // namespace stagecraft
