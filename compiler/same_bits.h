/// same_bits: whether two tensors are equal to the bit, NaN included. Strides may differ.
#pragma once

#include <ATen/core/Tensor.h>

namespace stagecraft {

/// Also of two undefined ones.
[[nodiscard]] bool same_bits(const at::Tensor& a, const at::Tensor& b);

}  // namespace stagecraft
