/// shares_memory checks whether two tensors have a common byte, however their handles were made.
///
/// It is used for the tensors that a module registers and for those that its forward writes.
/// Parameters are often views of one flat buffer. This is not sharing, even if they interleave in
/// the buffer (columns of one matrix), so neither storages nor ranges decide alone.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace stagecraft {

/// MemoryRange holds the addresses of the bytes from a tensor's first element to its last. It is
/// empty for a tensor without memory.
struct MemoryRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;  ///< one past the last

  friend bool operator==(const MemoryRange&, const MemoryRange&) = default;
};

[[nodiscard]] MemoryRange memory_range_of(const at::Tensor& tensor);

/// Returns whether the tensors share memory.
/// Cost: constant; if the ranges interleave, the elements of both and a bit for each byte of the
/// first range.
[[nodiscard]] bool shares_memory(const at::Tensor& a, const at::Tensor& b);

}  // namespace stagecraft
