/// thread_count sets, for one thread of the program, the number of threads that LibTorch uses
/// inside one operator.
///
/// Every thread that runs a parallel operator gets a pool of helper threads that lives as long as
/// the thread. Helpers of all pools wait by spinning until together they outnumber the processors.
/// Then they sleep, and each operator pays for waking them. So only workers' threads may keep a
/// pool. Work on the caller's thread runs on that thread alone.
///
/// TC-1: the counts of other threads, and of threads made later, stay as they were, although
///       at::set_num_threads changes the latter for the whole process.
#pragma once

#include <future>

namespace stagecraft {

/// Sets the calling thread's count. Call it at the beginning of a thread. Cost: 0.1 ms.
void set_own_thread_count(int count);

/// Prepares for threads that use operators; call it before making them. In a child of fork()
/// LibTorch makes its pool again for the first thread that asks, and if two threads ask at once one
/// of them fails. This function asks first. Cost: 0.1 ms.
void expect_threads();

/// Runs `work` on a thread of its own with that count and returns its result. The caller's thread
/// gets no helpers.
template <class Work>
auto on_own_thread(int count, Work&& work) {
  return std::async(std::launch::async,
                    [&] {
                      set_own_thread_count(count);
                      return work();
                    })
      .get();
}

/// SingleThreaded makes operators run on the calling thread alone while it lives, so that no pool
/// is made.
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
