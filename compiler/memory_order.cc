#include "stagecraft/compiler/memory_order.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include <ATen/ExpandUtils.h>

namespace stagecraft {

MemoryOrder memory_order_of(const at::Tensor& tensor) {
  if (tensor.is_contiguous()) {
    return {};
  }
  const std::vector<std::int64_t> strides =
      at::infer_dense_strides(tensor.sizes(), tensor.strides());
  MemoryOrder order(strides.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const MemoryOrder numbered = order;
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::int64_t dim) {
    return strides[static_cast<std::size_t>(dim)];
  });
  return order == numbered ? MemoryOrder() : order;
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
