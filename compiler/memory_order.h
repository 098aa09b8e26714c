/// memory_order: in which order the dimensions of a tensor lie in memory, and how a tensor crosses
/// a border of stages so that it has this order again behind it.
///
/// Operators choose their kernels, and views whether they are possible, by strides; a value that
/// came out of its border in another order (channels last, a transpose) would be another value to
/// them. So what crosses is contiguous with its dimensions in the order of memory.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft {

/// Dimensions from the outermost in memory to the innermost; empty: as they are numbered.
using MemoryOrder = std::vector<std::int64_t>;

/// Of a tensor that overlaps itself or has gaps, that of a dense copy. Dimensions of size 1, which
/// lie anywhere, are where channels-last memory has them, or else behind the one before.
/// Ensures: a tensor copied in its order has this order.
[[nodiscard]] MemoryOrder memory_order_of(const at::Tensor& tensor);

/// Whether tensors of so many dimensions may have it.
[[nodiscard]] bool is_memory_order(MemoryOrder order, std::size_t dimensions);

/// A dense copy in that order.
[[nodiscard]] at::Tensor copied_in_order(const at::Tensor& tensor, const MemoryOrder& order);

/// As it crosses: contiguous, its dimensions in the order of memory.
[[nodiscard]] at::Tensor to_memory_order(const at::Tensor& tensor, const MemoryOrder& order);

/// A view of what crossed, with its dimensions as they are numbered.
[[nodiscard]] at::Tensor from_memory_order(const at::Tensor& tensor, const MemoryOrder& order);

/// The sizes of what crosses.
[[nodiscard]] std::vector<std::int64_t> sizes_in_order(const std::vector<std::int64_t>& sizes,
                                                       const MemoryOrder& order);

}  // namespace stagecraft
