#include "stagecraft/tools/train/job/threads.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <latch>
#include <limits>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/lack_of_memory.h"

namespace stagecraft::tools {
namespace {

// Threads beside those of the workers: the caller's, four for actors, and some for their clock and
// their messages.
constexpr std::size_t kOthers = 8;

/// A thread's first allocation reserves a heap for it.
void reserve_heap() {
  void* volatile piece = std::malloc(1);
  std::free(piece);
}

/// Holds threads that wait for each other until it is destroyed.
class WaitingThreads {
 public:
  WaitingThreads() = default;
  ~WaitingThreads() {
    all_tried_.count_down();
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }
  WaitingThreads(const WaitingThreads&) = delete;
  WaitingThreads& operator=(const WaitingThreads&) = delete;

  void start_one() {
    threads_.emplace_back([this] {
      reserve_heap();
      all_tried_.wait();
    });
  }

  [[nodiscard]] std::size_t size() const { return threads_.size(); }

 private:
  std::latch all_tried_{1};
  std::vector<std::thread> threads_;
};

}  // namespace

int threads_to_run(int ranks, int threads_per_worker) {
  const std::size_t threads =
      static_cast<std::size_t>(ranks) * static_cast<std::size_t>(threads_per_worker) + kOthers;
  return static_cast<int>(std::min<std::size_t>(threads, std::numeric_limits<int>::max()));
}

void check_threads(int count) {
  WaitingThreads threads;
  try {
    for (int i = 0; i < count; ++i) {
      threads.start_one();
    }
  } catch (const std::exception& error) {
    const auto lack = lack_of_memory(
        error,
        fmt::format(
            "{} are needed, {} could be started; raise the limit (ulimit -u, ulimit -v), or "
            "use fewer --ranks and --threads-per-worker",
            count,
            threads.size()));
    if (lack) {
      throw Error(*lack);
    }
    throw;
  }
}

}  // namespace stagecraft::tools
