/// memory_order handles the order in which the dimensions of a tensor lie in memory, and restores
/// this order after a tensor has crossed a border of stages.
///
/// Operators choose their kernels by strides, and strides decide whether views are possible. For
/// operators, a value that arrives in another order (channels last, a transpose) is another value.
/// So values cross as contiguous tensors with their dimensions in the order of memory.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/libtorch/host_memory.h"

namespace stagecraft {

/// MemoryOrder lists the dimensions from the outermost in memory to the innermost. It is empty if
/// that is the order of their numbers.
using MemoryOrder = std::vector<std::int64_t>;

/// Returns the tensor's order; for a tensor that overlaps itself or has gaps, the order of a dense
/// copy. A dimension of size 1 may lie anywhere; it is placed where channels-last memory has it, or
/// else after the dimension before it.
/// Ensures: a tensor copied in its order has this order.
[[nodiscard]] MemoryOrder memory_order_of(const at::Tensor& tensor);

/// Returns whether tensors with so many dimensions may have this order.
[[nodiscard]] bool is_memory_order(MemoryOrder order, std::size_t dimensions);

/// Returns a dense copy in that order.
[[nodiscard]] at::Tensor copied_in_order(const at::Tensor& tensor,
                                         const MemoryOrder& order,
                                         HostMemory memory = HostMemory::Pageable);

/// Returns the tensor in the form that crosses: contiguous, its dimensions in the order of memory.
[[nodiscard]] at::Tensor to_memory_order(const at::Tensor& tensor, const MemoryOrder& order);

/// Returns a view of a tensor that has crossed, with its dimensions in the order of their numbers.
[[nodiscard]] at::Tensor from_memory_order(const at::Tensor& tensor, const MemoryOrder& order);

/// Returns the sizes of the tensor that crosses.
[[nodiscard]] std::vector<std::int64_t> sizes_in_order(const std::vector<std::int64_t>& sizes,
                                                       const MemoryOrder& order);

}  // namespace stagecraft
