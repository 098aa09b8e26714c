#include "stagecraft/base/process/memory_pool.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::int64_t held(const MemoryPool& pool) {
  return pool.use().live + pool.use().cached;
}

/// Holds a block that frees itself.
using Block = std::unique_ptr<void, void (*)(void*)>;

Block block_of(MemoryPool& pool, std::size_t bytes) {
  return {pool.allocate(bytes), &MemoryPool::free};
}

/// Returns whether the page is in memory.
bool is_present(const void* data) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(data) / page * page;
  unsigned char present = 0;
  return mincore(reinterpret_cast<void*>(begin), page, &present) == 0 && (present & 1) != 0;
}

/// Acts as a rank's step does: takes blocks of a few sizes that live for a while. Each block is
/// filled with its number, which shows that no other block shares its bytes.
struct PoolStep {
  struct Event {
    bool allocates;
    std::size_t which;  // index of the block
    std::size_t bytes;
  };
  std::vector<Event> events;
  std::size_t blocks = 0;
  std::int64_t peak = 0;

  explicit PoolStep(unsigned seed, std::size_t most = 200) {
    std::mt19937 random(seed);
    std::vector<std::pair<std::size_t, std::size_t>> alive;
    std::int64_t live = 0;
    while (blocks < most || !alive.empty()) {
      if (blocks < most && (alive.empty() || random() % 5 < 3)) {
        const std::size_t bytes = 1 + (random() % 7 + 1) * (random() % 2 == 0 ? 37 : 40'000);
        alive.emplace_back(blocks, bytes);
        events.push_back({true, blocks++, bytes});
        live += static_cast<std::int64_t>(bytes);
      } else {
        std::swap(alive[random() % alive.size()], alive.back());
        events.push_back({false, alive.back().first, alive.back().second});
        live -= static_cast<std::int64_t>(alive.back().second);
        alive.pop_back();
      }
      peak = std::max(peak, live);
    }
  }

  /// `learned`: checks that every write meets a page that is in memory.
  void run(MemoryPool& pool, bool learned = false) const {
    std::vector<unsigned char*> at(blocks);
    pool.begin_step();
    for (const Event& e : events) {
      const auto mark = static_cast<unsigned char>(e.which);
      if (e.allocates) {
        at[e.which] = static_cast<unsigned char*>(pool.allocate(e.bytes));
        REQUIRE(at[e.which] != nullptr);
        REQUIRE(reinterpret_cast<std::uintptr_t>(at[e.which]) % MemoryPool::kAlignment == 0);
        if (learned) {
          REQUIRE(is_present(at[e.which]));
          REQUIRE(is_present(at[e.which] + e.bytes / 2));
          REQUIRE(is_present(at[e.which] + e.bytes - 1));
        }
        std::memset(at[e.which], mark, e.bytes);
      } else {
        REQUIRE(at[e.which][0] == mark);
        REQUIRE(std::memcmp(at[e.which], at[e.which] + 1, e.bytes - 1) == 0);  // so all are
        MemoryPool::free(at[e.which]);
      }
    }
  }
};

/// Returns the exit status of a child of fork() that runs `body`.
template <class F>
int in_a_child(F&& body) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(body());
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("a pool counts what was asked for to the byte (MP-1)", "[base][memory]") {
  MemoryPool pool;
  CHECK(held(pool) == 0);
  {
    const Block a = block_of(pool, 1), b = block_of(pool, 3 * kMiB + 5);
    CHECK(pool.use().live == 3 * static_cast<std::int64_t>(kMiB) + 6);
    CHECK(pool.use().peak == pool.use().live);
    CHECK(held(pool) % sysconf(_SC_PAGESIZE) == 0);
    CHECK(MemoryPool::owns(a.get()));
    CHECK(MemoryPool::owns(b.get()));
    CHECK_FALSE(MemoryPool::owns(&pool));
  }
  CHECK(pool.use().live == 0);
  CHECK(pool.use().peak > 0);
  pool.begin_step();
  CHECK(pool.use().peak == 0);
  CHECK(pool.use().cached > 0);
  pool.trim();
  CHECK(held(pool) == 0);
}

TEST_CASE("a block that was freed is the next of its size", "[base][memory]") {
  MemoryPool pool;
  const Block other = block_of(pool, 4096);
  void* first = nullptr;
  {
    const Block block = block_of(pool, 4000);
    first = block.get();
  }
  const Block larger = block_of(pool, 5000), again = block_of(pool, 4001);
  CHECK(again.get() == first);
}

TEST_CASE("repeated steps take no more memory, and little beside the live bytes (MP-3)",
          "[base][memory]") {
  const auto seed = static_cast<unsigned>(GENERATE(range(0, 20)));
  const PoolStep step(seed), evaluation(seed + 100, 50);
  MemoryPool pool;
  step.run(pool);
  evaluation.run(pool);
  step.run(pool);
  const std::int64_t learned = held(pool);
  for (int i = 0; i < 4; ++i) {
    step.run(pool, true);
    CHECK(pool.use().peak == step.peak);
    CHECK(pool.use().live == 0);
    evaluation.run(pool, true);
    CHECK(pool.use().peak == evaluation.peak);
  }
  CHECK(held(pool) == learned);
  CHECK(static_cast<double>(learned) <= 1.5 * static_cast<double>(step.peak) + 2.0 * kMiB);
}

TEST_CASE("blocks are freed on other threads while their pool allocates", "[base][memory]") {
  MemoryPool pool;
  constexpr int kBlocks = 2000;
  std::vector<std::atomic<void*>> handed(kBlocks);
  std::thread other([&] {
    for (auto& slot : handed) {
      void* block = nullptr;
      while ((block = slot.load()) == nullptr) {
        std::this_thread::yield();
      }
      MemoryPool::free(block);
    }
  });
  for (auto& slot : handed) {
    void* const block = pool.allocate(1000);
    CHECK(block != nullptr);
    slot = block;
    const Block own = block_of(pool, 1000);
  }
  other.join();
  CHECK(pool.use().live == 0);
}

TEST_CASE("after its pool's end a block keeps only its own memory until it is freed (MP-2)",
          "[base][memory]") {
  std::optional<MemoryPool> pool(std::in_place);
  Block large = block_of(*pool, 8 * kMiB), small = block_of(*pool, 64);
  std::memset(large.get(), 1, 8 * kMiB);
  std::memset(small.get(), 7, 64);
  const auto* const inside = static_cast<char*>(large.get()) + 4 * kMiB;
  Block second = block_of(*pool, 2 * kMiB);
  const auto* const inside_second = static_cast<char*>(second.get()) + kMiB;
  CHECK(is_present(inside));
  large.reset();
  CHECK(is_present(inside));  // cached
  pool.reset();
  CHECK_FALSE(is_present(inside));
  CHECK(is_present(inside_second));
  second.reset();
  CHECK_FALSE(is_present(inside_second));
  CHECK(MemoryPool::owns(small.get()));
  CHECK(static_cast<char*>(small.get())[63] == 7);
  const void* const where = small.get();
  std::thread([&] { small.reset(); }).join();
  CHECK_FALSE(MemoryPool::owns(where));
}

TEST_CASE("a limit covers live and cached memory; cached memory is given back first",
          "[base][memory]") {
  constexpr std::int64_t kLimit = 8 * kMiB;
  MemoryPool pool(kLimit);
  {
    std::vector<Block> all;
    for (int i = 0; i < 3; ++i) {
      all.push_back(block_of(pool, 2 * kMiB));
      REQUIRE(all.back() != nullptr);
      CHECK(held(pool) <= kLimit);
    }
    CHECK(pool.allocate(3 * kMiB) == nullptr);
    CHECK(pool.use().live == 6 * static_cast<std::int64_t>(kMiB));  // unchanged
  }
  const Block one = block_of(pool, 8 * kMiB - 4096);
  CHECK(one != nullptr);
  CHECK(held(pool) <= kLimit);
  CHECK(pool.allocate(2 * kMiB) == nullptr);
}

TEST_CASE("a limit below a huge page is kept too", "[base][memory]") {
  MemoryPool pool(10'000);
  CHECK(block_of(pool, 8000) != nullptr);
  CHECK(held(pool) <= 10'000);
  CHECK(pool.allocate(12'000) == nullptr);
}

TEST_CASE("a size larger than any address is refused", "[base][memory]") {
  MemoryPool pool;
  const std::size_t bytes = GENERATE(std::numeric_limits<std::size_t>::max(),
                                     std::numeric_limits<std::size_t>::max() / 2,
                                     std::size_t{1} << 62,
                                     std::size_t{1} << 47);
  CHECK(pool.allocate(bytes) == nullptr);
  CHECK(block_of(pool, 100) != nullptr);
}

TEST_CASE("if the system has no memory, pools first give back what they cache", "[base][memory]") {
#ifdef __SANITIZE_ADDRESS__
  SKIP("the address sanitizer takes terabytes of address space");
#endif
  MemoryPool idle, pool;
  block_of(idle, 32 * kMiB).reset();
  REQUIRE(idle.use().cached > 0);
  const int status = in_a_child([&] {
    std::size_t pages = 0;
    if (FILE* const statm = std::fopen("/proc/self/statm", "r")) {
      if (std::fscanf(statm, "%zu", &pages) != 1) {
        return 1;
      }
      std::fclose(statm);
    }
    const std::size_t space = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const rlimit limit{space + 24 * kMiB, space + 24 * kMiB};
    if (setrlimit(RLIMIT_AS, &limit) != 0) {
      return 2;
    }
    const Block first = block_of(pool, 16 * kMiB);
    if (first == nullptr) {
      return 3;
    }
    if (pool.allocate(20 * kMiB) != nullptr) {
      return 4;
    }
    if (MemoryPool::trim_all() < static_cast<std::int64_t>(32 * kMiB) || held(idle) != 0) {
      return 5;
    }
    return block_of(pool, 20 * kMiB) != nullptr ? 0 : 6;
  });
  CHECK(status == 0);
}

TEST_CASE("a child of fork() frees blocks of its parent (MP-4)", "[base][memory]") {
  MemoryPool pool;
  Block block = block_of(pool, 1000);
  std::atomic<bool> done = false;
  std::thread busy([&] {
    while (!done) {
      block_of(pool, 5000).reset();
    }
  });
  for (int i = 0; i < 50; ++i) {
    CHECK(in_a_child([&] {
            block.reset();
            return pool.use().live <= 5000 ? 0 : 1;
          }) == 0);
  }
  done = true;
  busy.join();
  CHECK(pool.use().live == 1000);
}

}  // namespace stagecraft
