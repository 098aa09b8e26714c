/// WriteBehind passes tensors, in order, to a function on a thread of its own, so that its owner
/// can fetch the next ones meanwhile.
///
///   owner   add, add, add (waits for room), add ............ wait
///   thread       write, write ............. write, write, end
///
/// A CheckpointSave has one. The clock of the owner's thread starts the thread. A mutex guards the
/// tensors that wait, their bytes and the failure.
/// BH-1: it holds at most `most` bytes of tensors that are not written yet, or one larger tensor.
/// BH-2: once the function has thrown, it is not called again and holds no tensor; add() and wait()
///       rethrow the exception.
/// BH-3: the destructor waits for the tensor that is being written, and for no later one.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

#include <ATen/core/Tensor.h>

#include "stagecraft/base/clock.h"

namespace stagecraft {

class WriteBehind {
 public:
  /// Starts the thread, which ends after `count` tensors. Errors: std::system_error if no thread
  /// can be started.
  WriteBehind(std::size_t count, std::size_t most, std::function<void(const at::Tensor&)> write);
  ~WriteBehind();
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  /// Hands over a tensor, which must not change until it is written. Waits while too much is held
  /// (BH-1). Errors: those of the function.
  void add(at::Tensor tensor);

  /// Waits until all tensors are written. Requires: all were added. Errors: likewise.
  void wait();

 private:
  void wait_elsewhere(std::unique_lock<std::mutex>& lock, const std::function<bool()>& condition);
  void run();
  void write_all();
  [[nodiscard]] at::Tensor next();
  void forget(std::size_t bytes);

  const std::size_t most_;
  const std::function<void(const at::Tensor&)> write_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<at::Tensor> waiting_;
  std::size_t left_;      // tensors that are not written yet
  std::size_t held_ = 0;  // bytes of those that were added
  std::exception_ptr failure_;
  bool dropped_ = false;
  std::unique_ptr<Clock::Thread> thread_;  // last: it uses all other members
};

}  // namespace stagecraft
