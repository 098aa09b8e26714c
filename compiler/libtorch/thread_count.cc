#include "stagecraft/compiler/libtorch/thread_count.h"

#include <mutex>
#include <thread>

#include <ATen/Parallel.h>

namespace stagecraft {
namespace {

/// Returns the count with which a new thread begins.
int count_of_new_threads() {
  int count = 1;
  std::thread([&] { count = at::get_num_threads(); }).join();
  return count;
}

}  // namespace

void set_own_thread_count(int count) {
  // LibTorch gives a thread the common count when it first asks for its own, so ask before changing
  // it.
  if (at::get_num_threads() == count) {
    return;
  }
  static std::mutex one_at_a_time;  // the common count is wrong between the two changes
  const std::scoped_lock lock(one_at_a_time);
  const int common = count_of_new_threads();
  at::set_num_threads(count);
  std::thread([&] { at::set_num_threads(common); }).join();  // keeps TC-1
}

void expect_threads() {
  std::thread([] { at::set_num_threads(at::get_num_threads()); }).join();  // keeps TC-1
}

SingleThreaded::SingleThreaded() : before_(at::get_num_threads()) {
  set_own_thread_count(1);
}

SingleThreaded::~SingleThreaded() {
  set_own_thread_count(before_);
}

}  // namespace stagecraft
