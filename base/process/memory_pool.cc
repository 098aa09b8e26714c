#include "stagecraft/base/process/memory_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include <pthread.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace stagecraft {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLargestSlab = std::size_t{64} << 20;  // unless one block needs more
// A new slab is an eighth of the memory held, so that slabs stay few. It has room for several
// blocks of the requested size, so that little is left over at its end.
constexpr std::size_t kShareOfNewSlab = 8;
constexpr std::size_t kBlocksOfNewSlab = 4;

constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max() / 16;  // no sum overflows

constexpr std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

// The address sanitizer reports any access to free memory.
#ifdef __SANITIZE_ADDRESS__
void forbid(const void* data, std::size_t bytes) {
  ASAN_POISON_MEMORY_REGION(data, bytes);
}
void permit(const void* data, std::size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(data, bytes);
}
#else
void forbid(const void*, std::size_t) {}
void permit(const void*, std::size_t) {}
#endif

/// Returns memory aligned to huge pages (for at least one huge page), or null if the system has no
/// room.
std::byte* map_memory(std::size_t bytes) {
  const std::size_t spare = bytes >= kHugePage ? kHugePage : 0;
  void* const mapped =
      mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    return nullptr;
  }
  auto* const begin = static_cast<std::byte*>(mapped);
  if (spare == 0) {
    return begin;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(mapped);
  const std::size_t before = round_up(address, kHugePage) - address;
  if (before > 0) {
    munmap(begin, before);
  }
  munmap(begin + before + bytes, spare - before);
  return begin + before;
}

/// Asks for huge pages that are present. Without them the memory works, but the first access is
/// slower.
void make_present(std::byte* begin, std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  (void)madvise(begin, bytes, MADV_HUGEPAGE);
#endif
#ifdef MADV_POPULATE_WRITE
  (void)madvise(begin, bytes, MADV_POPULATE_WRITE);
#endif
}

}  // namespace

struct MemoryPool::Core {
  struct Slab;

  /// The header lies before its data and takes as many bytes as the data's alignment.
  struct alignas(kAlignment) Block {
    Core* core;
    Slab* slab;
    std::size_t size;   // of the data, a multiple of kAlignment
    std::size_t asked;  // bytes requested of it; 0: free
    Block* older;       // the next older free block of its size

    [[nodiscard]] std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
    /// Returns the next block; null at the end of the slab.
    [[nodiscard]] Block* behind();
  };
  static_assert(sizeof(Block) == kAlignment);

  struct Slab {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;

    Slab() = default;
    ~Slab() {
      permit(begin, bytes);
      munmap(begin, bytes);
    }
    Slab(const Slab&) = delete;
    Slab& operator=(const Slab&) = delete;

    [[nodiscard]] std::byte* end() const { return begin + bytes; }
    [[nodiscard]] Block* first() const { return reinterpret_cast<Block*>(begin); }
    [[nodiscard]] bool is_free() const {
      return first()->asked == 0 && first()->behind() == nullptr;
    }
  };

  std::mutex mutex;  // guards all below
  std::vector<std::unique_ptr<Slab>> slabs;
  std::map<std::size_t, Block*> free_blocks;  // the newest free block of each size, or null
  std::size_t limit = std::numeric_limits<std::size_t>::max();
  std::size_t held = 0;
  std::size_t live = 0;
  std::size_t peak = 0;
  std::size_t in_use = 0;    // blocks
  bool has_to_sort = false;  // since put_together() a block was freed or is in no list
  bool closed = false;

  // ---- blocks -----------------------------------------------------------------------------------

  /// Makes a free block that is in no list yet.
  Block* make_block(Slab* slab, std::byte* at, std::size_t bytes) {
    permit(at, sizeof(Block));
    return new (at) Block{this, slab, bytes - sizeof(Block), 0, nullptr};
  }

  void put(Block* block) {
    forbid(block->data(), block->size);
    Block*& newest = free_blocks[block->size];
    block->older = newest;
    newest = block;
  }

  /// Returns a block of that size, or of the smallest size above it; null if there is none.
  Block* best_fit(std::size_t size) {
    for (auto at = free_blocks.lower_bound(size); at != free_blocks.end(); ++at) {
      if (at->second != nullptr) {
        return std::exchange(at->second, at->second->older);
      }
    }
    return nullptr;
  }

  /// Makes a free block of the bytes beyond `size`.
  void split(Block* block, std::size_t size) {
    if (block->size < size + sizeof(Block) + kAlignment) {
      return;
    }
    Block* const rest = make_block(block->slab, block->data() + size, block->size - size);
    block->size = size;
    put(rest);
  }

  /// Merges free neighbors and rebuilds the lists.
  void put_together() noexcept {
    free_blocks.clear();
    try {
      for (const auto& slab : slabs) {
        for (Block* block = slab->first(); block != nullptr; block = block->behind()) {
          if (block->asked == 0) {
            absorb_free(block);
            put(block);
          }
        }
      }
      has_to_sort = false;
    } catch (const std::bad_alloc&) {
      has_to_sort = true;  // there was no memory for the lists
    }
  }

  static void absorb_free(Block* block) {
    Block* behind = block->behind();
    while (behind != nullptr && behind->asked == 0) {
      block->size += sizeof(Block) + behind->size;
      behind = block->behind();
    }
  }

  // ---- slabs ------------------------------------------------------------------------------------

  /// Adds a slab with room for a block of that size. Returns false if the limit or the system has
  /// no room.
  bool add_slab(std::size_t size) {
    const std::size_t least = round_up(size + sizeof(Block), page_size());
    const std::size_t wanted = std::clamp(
        std::max(held / kShareOfNewSlab, kBlocksOfNewSlab * size), kHugePage, kLargestSlab);
    const std::size_t good = round_up(std::max(least, wanted), kHugePage);
    const std::size_t room = (limit - held) / page_size() * page_size();
    return least <= room && (add(std::min(good, room)) || add(least));
  }

  /// Adds a slab of that size. Returns false if the system has no room.
  bool add(std::size_t bytes) {
    auto slab = std::make_unique<Slab>();
    slabs.reserve(slabs.size() + 1);
    slab->begin = map_memory(bytes);
    if (slab->begin == nullptr) {
      return false;
    }
    slab->bytes = bytes;
    make_present(slab->begin, bytes);
    held += bytes;
    Block* const whole = make_block(slab.get(), slab->begin, bytes);
    slabs.push_back(std::move(slab));
    put(whole);
    return true;
  }

  /// Returns how many bytes were given back.
  std::size_t give_back() noexcept {
    const std::size_t before = held;
    put_together();
    std::erase_if(slabs, [this](const std::unique_ptr<Slab>& slab) {
      held -= slab->is_free() ? slab->bytes : 0;
      return slab->is_free();
    });
    if (held != before) {
      put_together();
    }
    return before - held;
  }

  /// Gives the whole pages of a free block back to the system. Its addresses stay.
  static void discard(Block* block) {
    const auto data = reinterpret_cast<std::uintptr_t>(block->data());
    const std::uintptr_t begin = round_up(data, page_size());
    const std::uintptr_t end = (data + block->size) / page_size() * page_size();
    if (begin < end) {
      (void)madvise(block->data() + (begin - data), end - begin, MADV_DONTNEED);
    }
  }

  // ---- what the pool does -----------------------------------------------------------------------

  Block* find(std::size_t size) {
    Block* block = best_fit(size);
    if (block == nullptr && has_to_sort) {
      put_together();
      block = best_fit(size);
    }
    if (block == nullptr && (add_slab(size) || (give_back() > 0 && add_slab(size)))) {
      block = best_fit(size);
    }
    return block;
  }

  /// Returns null if there is no room.
  Block* block_of(std::size_t size) {
    try {
      Block* const block = find(size);
      if (block != nullptr) {
        split(block, size);
      }
      return block;
    } catch (const std::bad_alloc&) {  // the lists had no memory
      has_to_sort = true;
      return nullptr;
    }
  }

  void* allocate(std::size_t bytes) {
    const std::scoped_lock lock(mutex);
    Block* const block = block_of(round_up(bytes, kAlignment));
    if (block == nullptr) {
      return nullptr;
    }
    block->asked = bytes;
    permit(block->data(), bytes);
    live += bytes;
    peak = std::max(peak, live);
    ++in_use;
    return block->data();
  }

  /// Returns whether this was the last block of a pool that has ended. If the lists have no memory,
  /// the next put_together() finds the block.
  bool free(Block* block) noexcept {
    const std::scoped_lock lock(mutex);
    live -= std::exchange(block->asked, 0);
    --in_use;
    has_to_sort = true;
    if (closed) {
      discard(block);
      (void)give_back();
      return in_use == 0;
    }
    try {
      put(block);
    } catch (const std::bad_alloc&) {
    }
    return false;
  }

  /// Returns whether no block is in use.
  bool close() {
    const std::scoped_lock lock(mutex);
    closed = true;
    (void)give_back();
    for (const auto& [size, newest] : free_blocks) {
      for (Block* block = newest; block != nullptr; block = block->older) {
        discard(block);
      }
    }
    return in_use == 0;
  }

  [[nodiscard]] bool owns(const std::byte* data) {
    const std::scoped_lock lock(mutex);
    return std::ranges::any_of(
        slabs, [&](const auto& slab) { return data >= slab->begin && data < slab->end(); });
  }
};

MemoryPool::Core::Block* MemoryPool::Core::Block::behind() {
  std::byte* const end = data() + size;
  return end == slab->end() ? nullptr : reinterpret_cast<Block*>(end);
}

/// Holds all pools, and those that have ended but have blocks in use.
struct MemoryPool::Pools {
  std::mutex mutex;
  std::vector<Core*> cores;

  /// Returns the list, which is never destroyed: static objects of others may free blocks later.
  /// Keeps MP-4.
  static Pools& all() {
    static Pools* const pools = [] {
      pthread_atfork([] { all().lock(); }, [] { all().unlock(); }, [] { all().unlock(); });
      return new Pools;
    }();
    return *pools;
  }

  void lock() {
    mutex.lock();
    for (Core* core : cores) {
      core->mutex.lock();
    }
  }

  void unlock() {
    for (Core* core : cores) {
      core->mutex.unlock();
    }
    mutex.unlock();
  }

  void remove(Core* core) {
    const std::unique_ptr<Core> last(core);
    const std::scoped_lock lock_all(mutex);
    std::erase(cores, core);
  }
};

MemoryPool::MemoryPool(std::optional<std::int64_t> limit) : core_(new Core) {
  if (limit) {
    core_->limit = static_cast<std::size_t>(*limit);
  }
  Pools& pools = Pools::all();
  const std::scoped_lock lock(pools.mutex);
  pools.cores.push_back(core_);
}

MemoryPool::~MemoryPool() {
  if (core_->close()) {
    Pools::all().remove(core_);
  }
}

void* MemoryPool::allocate(std::size_t bytes) {
  return bytes > kMost ? nullptr : core_->allocate(bytes);
}

void MemoryPool::begin_step() {
  const std::scoped_lock lock(core_->mutex);
  if (core_->has_to_sort) {
    core_->put_together();
  }
  core_->peak = core_->live;
}

void MemoryPool::trim() {
  const std::scoped_lock lock(core_->mutex);
  (void)core_->give_back();
}

MemoryUse MemoryPool::use() const {
  const std::scoped_lock lock(core_->mutex);
  return {.live = static_cast<std::int64_t>(core_->live),
          .cached = static_cast<std::int64_t>(core_->held - core_->live),
          .peak = static_cast<std::int64_t>(core_->peak)};
}

void MemoryPool::free(void* data) {
  Core::Block* const block = static_cast<Core::Block*>(data) - 1;
  Core* const core = block->core;
  if (core->free(block)) {
    Pools::all().remove(core);
  }
}

bool MemoryPool::owns(const void* data) {
  Pools& pools = Pools::all();
  const std::scoped_lock lock(pools.mutex);
  return std::ranges::any_of(
      pools.cores, [&](Core* core) { return core->owns(static_cast<const std::byte*>(data)); });
}

std::int64_t MemoryPool::trim_all() {
  Pools& pools = Pools::all();
  const std::scoped_lock lock(pools.mutex);
  std::size_t bytes = 0;
  for (Core* core : pools.cores) {
    const std::scoped_lock lock_core(core->mutex);
    bytes += core->give_back();
  }
  return static_cast<std::int64_t>(bytes);
}

}  // namespace stagecraft
