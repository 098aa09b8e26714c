/// RefusingAllocator is LibTorch's allocator of this process, which a simulation can let fail.
///
/// It gets what ranks' own memory (StepMemory) does not have.
#pragma once

#include <cstddef>
#include <functional>

namespace stagecraft::simulation {

class RefusingAllocator {
 public:
  /// Asks `refuses` before each allocation, with its bytes, as long as this exists. It is asked on
  /// the thread that allocates. There is at most one at a time.
  explicit RefusingAllocator(std::function<bool(std::size_t)> refuses);
  RefusingAllocator(const RefusingAllocator&) = delete;
  RefusingAllocator& operator=(const RefusingAllocator&) = delete;
  ~RefusingAllocator();

  /// Makes LibTorch use it. Requires: no trainer was made before in this process.
  static void install();
};

/// Throws what LibTorch's allocator throws when there is no memory.
[[noreturn]] void refuse_memory();

}  // namespace stagecraft::simulation
