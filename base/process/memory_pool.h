/// MemoryPool takes memory from the system once and hands it out many times.
///
/// It serves work that repeats its allocations, such as a rank's steps: later rounds reuse the
/// blocks of the first round. One thread at a time allocates; any thread frees at any time.
///
/// Blocks lie in slabs. A slab is mapped and made present as a whole, on huge pages if the system
/// provides them. A freed block is kept in a list of its size and serves the next request of that
/// size while it is still in the cache. Only if no block fits, the pool merges free neighbors and
/// splits larger blocks, best fit first (deferred coalescing; Wilson et al., Dynamic Storage
/// Allocation, 1995, section 3.7).
///
///     slab  [head|data....][head|data..][head|free..............]
///
/// MP-1: live + cached equals the memory that the pool has from the system, to the byte: live is
///       requested and not yet freed, cached is the rest.
/// MP-2: a block may be freed after its pool has ended. The end gives back all free memory; slabs
///       with blocks in use keep only those blocks, until the last one is freed.
/// MP-3: after begin_step() free memory is merged again, so that equal steps run alike.
/// MP-4: the child of a fork() may free blocks of its parent: no pool stays locked in the child.
///
/// One mutex per pool guards its slabs and lists, because other threads free blocks. Another mutex
/// guards the list of pools. A thread that holds the first never waits for the second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace stagecraft {

/// MemoryUse counts the memory of one pool. Units: bytes.
struct MemoryUse {
  std::int64_t live = 0;    ///< requested and not freed
  std::int64_t cached = 0;  ///< kept from the system beyond that
  std::int64_t peak = 0;    ///< the most that was live, since begin_step()
};

class MemoryPool {
 public:
  static constexpr std::size_t kAlignment = 64;  ///< as LibTorch's

  /// `limit`: the upper bound of live + cached, in bytes.
  explicit MemoryPool(std::optional<std::int64_t> limit = {});
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// Returns a block of `bytes`, aligned to kAlignment. First gives back free memory if the limit
  /// or the system leaves no room; returns null if there is still none. Requires: bytes > 0.
  [[nodiscard]] void* allocate(std::size_t bytes);

  /// Merges free memory and restarts the peak.
  void begin_step();

  /// Gives back the slabs without blocks in use.
  void trim();

  [[nodiscard]] MemoryUse use() const;

  // These serve blocks of all pools; any thread may call them.
  static void free(void* data);
  [[nodiscard]] static bool owns(const void* data);
  /// Trims all pools. Returns how many bytes were given back.
  static std::int64_t trim_all();

 private:
  struct Core;
  struct Pools;
  Core* core_;  ///< after the pool's end it owns itself until the last block is freed
};

}  // namespace stagecraft
