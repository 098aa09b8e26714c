#include "stagecraft/compiler/libtorch/shares_memory.h"

#include <vector>

namespace stagecraft {
namespace {

/// Calls `visit` with the address of every element.
template <class Visit>
void for_each_element(at::IntArrayRef sizes,
                      at::IntArrayRef strides,
                      std::uintptr_t address,
                      const Visit& visit) {
  if (sizes.empty()) {
    visit(address);
    return;
  }
  for (std::int64_t i = 0; i < sizes[0]; ++i) {
    for_each_element(sizes.slice(1),
                     strides.slice(1),
                     address + static_cast<std::uintptr_t>(i * strides[0]),
                     visit);
  }
}

/// Calls `visit` with the address of every byte. It uses no operators, since capture would record
/// them.
template <class Visit>
void for_each_byte(const at::Tensor& tensor, const Visit& visit) {
  std::vector<std::int64_t> strides = tensor.strides().vec();
  const auto bytes = static_cast<std::int64_t>(tensor.element_size());
  for (std::int64_t& stride : strides) {
    stride *= bytes;
  }
  for_each_element(
      tensor.sizes(), strides, memory_range_of(tensor).begin, [&](std::uintptr_t element) {
        for (std::uintptr_t byte = element; byte < element + static_cast<std::uintptr_t>(bytes);
             ++byte) {
          visit(byte);
        }
      });
}

}  // namespace

MemoryRange memory_range_of(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != at::kStrided || !tensor.has_storage() ||
      tensor.numel() == 0) {
    return {};
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr());
  if (begin == 0) {  // on the device meta
    return {};
  }
  std::int64_t last = 0;
  for (std::int64_t d = 0; d < tensor.dim(); ++d) {
    last += (tensor.size(d) - 1) * tensor.stride(d);
  }
  return {begin, begin + static_cast<std::uintptr_t>(last + 1) * tensor.element_size()};
}

bool shares_memory(const at::Tensor& a, const at::Tensor& b) {
  const MemoryRange first = memory_range_of(a);
  const MemoryRange second = memory_range_of(b);
  if (first.end <= second.begin || second.end <= first.begin) {
    return false;
  }
  if (a.is_non_overlapping_and_dense() && b.is_non_overlapping_and_dense()) {
    return true;
  }
  std::vector<bool> seen(first.end - first.begin, false);
  for_each_byte(a, [&](std::uintptr_t byte) { seen[byte - first.begin] = true; });
  bool common = false;
  for_each_byte(b, [&](std::uintptr_t byte) {
    common = common || (byte >= first.begin && byte < first.end && seen[byte - first.begin]);
  });
  return common;
}

}  // namespace stagecraft
