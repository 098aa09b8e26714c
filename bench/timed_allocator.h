/// TimedAllocator: the CPU allocator in place, with somebody told of each moment spent in it.
///
/// LibTorch has one allocator for the process; this one stands before it while one lives, and hands
/// all on. What was allocated meanwhile may be freed at any time.
/// TA-1: the memory is that which the allocator in place gives; it gets it back.
#pragma once

namespace stagecraft::bench {

/// Told on the thread that allocates or frees.
struct AllocatorWatch {
  void (*begin)();
  void (*end)();
};

class TimedAllocator {
 public:
  /// Requires: none lives; nobody sets an allocator until this ends, and none has been set with the
  ///           highest priority.
  explicit TimedAllocator(AllocatorWatch watch);
  ~TimedAllocator();
  TimedAllocator(const TimedAllocator&) = delete;
  TimedAllocator& operator=(const TimedAllocator&) = delete;
};

}  // namespace stagecraft::bench
