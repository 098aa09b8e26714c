/// shares_memory: whether two tensors show a common byte, whatever handles they are and however
/// they came to be.
///
/// Asked of what a module registers, and of what its forward writes. Parameters are often views of
/// one flat buffer, which is no sharing, also where they interleave in it (columns of one matrix):
/// so neither storages nor ranges decide alone.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace stagecraft {

/// The bytes from a tensor's first element to its last, as addresses; empty for a tensor without
/// memory.
struct MemoryRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;  ///< one past the last

  friend bool operator==(const MemoryRange&, const MemoryRange&) = default;
};

[[nodiscard]] MemoryRange memory_range_of(const at::Tensor& tensor);

/// Cost: constant; where the ranges interleave, the elements of both and a bit for each byte of the
/// first range.
[[nodiscard]] bool shares_memory(const at::Tensor& a, const at::Tensor& b);

}  // namespace stagecraft
