/// TimedAllocator wraps the present CPU allocator and reports each moment spent in it.
///
/// LibTorch has one allocator for the process. While a TimedAllocator lives, it stands before that
/// allocator and forwards all calls. Memory allocated meanwhile may be freed at any time.
/// TA-1: the memory comes from the wrapped allocator and returns to it.
#pragma once

namespace stagecraft::bench {

/// AllocatorWatch is called on the thread that allocates or frees.
struct AllocatorWatch {
  void (*begin)();
  void (*end)();
};

class TimedAllocator {
 public:
  /// Requires: no other TimedAllocator lives; no allocator is set until this ends, and none has
  ///           been set with the highest priority.
  explicit TimedAllocator(AllocatorWatch watch);
  ~TimedAllocator();
  TimedAllocator(const TimedAllocator&) = delete;
  TimedAllocator& operator=(const TimedAllocator&) = delete;
};

}  // namespace stagecraft::bench
