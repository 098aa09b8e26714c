#include "stagecraft/compiler/libtorch/memory_order.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include <ATen/ExpandUtils.h>

namespace stagecraft {

MemoryOrder memory_order_of(const at::Tensor& tensor) {
  const bool is_row = tensor.dim() > 0 && tensor.numel() == tensor.size(0);
  if (!is_row) {  // kernels are chosen by this, even if there is only one channel
    const at::MemoryFormat format = tensor.suggest_memory_format();
    if (format == at::MemoryFormat::ChannelsLast) {
      return {0, 2, 3, 1};
    }
    if (format == at::MemoryFormat::ChannelsLast3d) {
      return {0, 2, 3, 4, 1};
    }
  }
  if (tensor.is_contiguous()) {
    return {};
  }
  const std::vector<std::int64_t> strides =
      at::infer_dense_strides(tensor.sizes(), tensor.strides());
  MemoryOrder order;
  for (std::int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (tensor.size(dim) != 1) {
      order.push_back(dim);
    }
  }
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::int64_t dim) {
    return strides[static_cast<std::size_t>(dim)];
  });
  for (std::int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (tensor.size(dim) == 1) {
      const auto before = std::ranges::find(order, dim - 1);
      order.insert(before == order.end() ? order.begin() : before + 1, dim);
    }
  }
  return std::ranges::is_sorted(order) ? MemoryOrder() : order;
}

bool is_memory_order(MemoryOrder order, std::size_t dimensions) {
  MemoryOrder numbered(dimensions);
  std::iota(numbered.begin(), numbered.end(), std::int64_t{0});
  std::ranges::sort(order);
  return order.empty() || order == numbered;
}

at::Tensor copied_in_order(const at::Tensor& tensor, const MemoryOrder& order, HostMemory memory) {
  const at::Tensor in_order = order.empty() ? tensor : tensor.permute(order);
  return from_memory_order(empty_in(memory, in_order.sizes(), in_order.options()).copy_(in_order),
                           order);
}

at::Tensor to_memory_order(const at::Tensor& tensor, const MemoryOrder& order) {
  return (order.empty() ? tensor : tensor.permute(order)).contiguous();
}

at::Tensor from_memory_order(const at::Tensor& tensor, const MemoryOrder& order) {
  if (order.empty()) {
    return tensor;
  }
  MemoryOrder back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  return tensor.permute(back);
}

std::vector<std::int64_t> sizes_in_order(const std::vector<std::int64_t>& sizes,
                                         const MemoryOrder& order) {
  if (order.empty()) {
    return sizes;
  }
  std::vector<std::int64_t> result;
  for (const std::int64_t dim : order) {
    result.push_back(sizes[static_cast<std::size_t>(dim)]);
  }
  return result;
}

}  // namespace stagecraft
