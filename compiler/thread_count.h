/// thread_count: how many threads LibTorch uses inside one operator, for one thread of the program.
///
/// Every thread that runs a parallel operator gets a pool of helpers that lives as long as it does.
/// Helpers of all pools wait by spinning until together they outnumber the processors; then they
/// sleep, and each operator pays for waking them. So no thread but a worker's may be left with a
/// pool: what runs on the caller's thread runs alone.
///
/// TC-1: the counts of other threads, and of threads made later, stay as they were, although
///       at::set_num_threads changes the latter for the whole process.
#pragma once

#include <future>

namespace stagecraft {

/// Sets the calling thread's count. Cost: 0.1 ms; for the beginning of a thread.
void set_own_thread_count(int count);

/// Called before threads are made that use operators. In a child of fork() LibTorch makes its pool
/// anew for whoever asks first, and of two that ask at once one fails; so this asks before them.
/// Cost: 0.1 ms.
void expect_threads();

/// Returns what `work` returns, done on a thread of its own with that count: the caller's is left
/// without helpers.
template <class Work>
auto on_own_thread(int count, Work&& work) {
  return std::async(std::launch::async,
                    [&] {
                      set_own_thread_count(count);
                      return work();
                    })
      .get();
}

/// While one lives, operators of the calling thread run on it alone, so no pool comes to be.
class SingleThreaded {
 public:
  SingleThreaded();
  ~SingleThreaded();
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;

 private:
  int before_;
};

}  // namespace stagecraft
