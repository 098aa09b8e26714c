/// MemoryPool: memory that is asked of the system once and handed out again and again.
///
/// For work that repeats its allocations, as a rank's steps do: what the first round took is what
/// every further one finds. One thread at a time allocates; any thread frees, whenever it likes.
///
/// Blocks lie in slabs, which are mapped and made present whole, on huge pages where the system
/// gives them. What is freed is kept by its size and is the next block of that size, still in the
/// cache; only where none fits are neighbours put together and larger ones split, best fit first
/// (deferred coalescing; Wilson et al., Dynamic Storage Allocation, 1995, section 3.7).
///
///     slab  [head|data....][head|data..][head|free..............]
///
/// MP-1: live + cached is what the pool has of the system, to the byte: live what was asked for and
///       not yet freed, cached all else.
/// MP-2: a block may be freed behind the end of its pool. The end gives back all that is free;
///       slabs with blocks in use keep no more than these, until the last one is freed.
/// MP-3: behind begin_step() free memory is whole again, so that equal steps run alike.
/// MP-4: the child of a fork() may free what was its parent's: no pool is locked for ever in it.
///
/// A mutex per pool guards its slabs and lists, as blocks are freed on other threads; another the
/// list of pools. Whoever holds the first never waits for the second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace stagecraft {

/// Of one pool. Units: bytes.
struct MemoryUse {
  std::int64_t live = 0;    ///< asked for and not freed
  std::int64_t cached = 0;  ///< kept from the system beyond that
  std::int64_t peak = 0;    ///< the most that was live, since begin_step()
};

class MemoryPool {
 public:
  static constexpr std::size_t kAlignment = 64;  ///< as LibTorch's

  /// `limit`: the most that live and cached may be together, in bytes.
  explicit MemoryPool(std::optional<std::int64_t> limit = {});
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// A block of `bytes`, aligned to kAlignment; null where the limit or the system leave no room,
  /// after free memory was given back. Requires: bytes > 0.
  [[nodiscard]] void* allocate(std::size_t bytes);

  /// Puts free memory together and begins the peak anew.
  void begin_step();

  /// Gives back the slabs in which nothing is in use.
  void trim();

  [[nodiscard]] MemoryUse use() const;

  // Of all pools, by any thread.
  static void free(void* data);
  [[nodiscard]] static bool owns(const void* data);
  /// Returns how many bytes were given back.
  static std::int64_t trim_all();

 private:
  struct Core;
  struct Pools;
  Core* core_;  ///< its own owner from the pool's end to that of the last block
};

}  // namespace stagecraft
