/// StepMemory: what the steps of one rank allocate comes from a pool of the rank's own.
///
/// A plan repeats, so behind its first steps a rank asks the system for nothing any more. Made by
/// the executor, which has a Scope around each step; the pool ends with it (MP-2).
///
/// SY-1: only what the thread with the scope allocates inside of it is the pool's. All other
///       threads, such as LibTorch's inside an operator, and all times between keep the allocator
///       that LibTorch had when the first rank was made.
/// SY-2: LibTorch's profiler hears of every block, as it does from LibTorch's own allocator.
/// SY-3: where memory runs out, for whomever, all pools give back what they cache before it is an
///       error.
///
/// An allocator that is set while there are ranks takes the pools' place in their steps, too, until
/// the next rank is made.
#pragma once

#include <cstdint>
#include <optional>

#include "stagecraft/actors/executor/rank_times.h"
#include "stagecraft/base/memory_pool.h"

namespace stagecraft {

class StepMemory {
 public:
  /// `limit`: TrainerOptions::memory_limit.
  explicit StepMemory(std::optional<std::int64_t> limit);

  /// While one lives, its thread allocates from the pool. Errors, of LibTorch's allocations inside:
  /// DeviceOutOfMemory with what the pool has, where limit or system leave no room.
  class Scope {
   public:
    explicit Scope(StepMemory& memory);
    /// Gives back what is cached where an error ends the step: it may have been for lack of memory.
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    StepMemory& memory_;
    StepMemory* outer_;
    int errors_;
  };

  /// Of the step under way. Thread: the scope's.
  [[nodiscard]] RankMemory use() const;

 private:
  friend class PooledAllocator;

  std::optional<std::int64_t> limit_;
  MemoryPool pool_;
  std::int64_t faults_before_ = 0;  ///< of its thread, at the begin of the step
};

}  // namespace stagecraft
