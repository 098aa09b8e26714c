/// StepMemory gives the steps of one rank memory from a pool of the rank's own.
///
/// A plan repeats, so after its first steps a rank asks the system for no more memory. StepMemory
/// is a part of the CPU as a device, which puts a Scope around each step; the pool ends with it
/// (MP-2).
///
/// SY-1: the pool serves only allocations of the scope's thread inside the scope. All other
///       threads, such as LibTorch's inside an operator, and all times outside of scopes keep the
///       allocator that LibTorch had when the first rank was made.
/// SY-2: LibTorch's profiler sees every block, as it does from LibTorch's own allocator.
/// SY-3: when memory runs out, for any rank, all pools give back their caches before it is an
///       error.
///
/// An allocator that is set while there are ranks replaces the pools, also in steps, until the next
/// rank is made.
#pragma once

#include <cstdint>
#include <optional>

#include "stagecraft/actors/executor/step/rank_times.h"
#include "stagecraft/base/process/memory_pool.h"

namespace stagecraft {

class StepMemory {
 public:
  /// `limit`: TrainerOptions::memory_limit.
  explicit StepMemory(std::optional<std::int64_t> limit);

  /// While a Scope lives, its thread allocates from the pool. Errors of LibTorch's allocations
  /// inside: DeviceOutOfMemory, with the use of the pool, if limit or system leave no room.
  class Scope {
   public:
    explicit Scope(StepMemory& memory);
    /// Gives back the cache if an error ends the step: it may have been a lack of memory.
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    StepMemory& memory_;
    StepMemory* outer_;
    int errors_;
  };

  /// Returns the memory of the step in progress. Thread: the scope's.
  [[nodiscard]] RankMemory use() const;

 private:
  friend class PooledAllocator;

  std::optional<std::int64_t> limit_;
  MemoryPool pool_;
  std::int64_t faults_before_ = 0;  ///< of its thread, at the begin of the step
};

}  // namespace stagecraft
