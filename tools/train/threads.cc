#include "stagecraft/tools/train/threads.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <latch>
#include <limits>
#include <optional>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/lack_of_memory.h"

namespace stagecraft::tools {
namespace {

// Beside those of the workers: the caller's, the actors' and their clock's.
constexpr std::size_t kOthers = 8;

/// A thread's first allocation reserves a heap for it.
void reserve_heap() {
  void* volatile piece = std::malloc(1);
  std::free(piece);
}

}  // namespace

int threads_to_compile() {
  return at::get_num_threads();
}

int threads_to_run(const TrainOptions& options, const ScheduleChoice& choice) {
  const std::size_t threads =
      choice.schedule.rows().size() * static_cast<std::size_t>(options.threads_per_worker) +
      kOthers + static_cast<std::size_t>(threads_to_compile());
  return static_cast<int>(std::min<std::size_t>(threads, std::numeric_limits<int>::max()));
}

void check_threads(int count) {
  std::latch all_tried{1};
  std::optional<Error> failure;
  std::vector<std::thread> threads;
  try {
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&all_tried] {
        reserve_heap();
        all_tried.wait();
      });
    }
  } catch (const std::exception& error) {
    const std::string what = fmt::format(
        "{} are needed, {} could be started; raise the limit that stands in the way (ulimit -u, "
        "ulimit -v), or use fewer --ranks and --threads-per-worker",
        count,
        threads.size());
    failure = lack_of_memory(error, what);
  }
  all_tried.count_down();
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (failure) {
    throw Error(*failure);
  }
}

}  // namespace stagecraft::tools
