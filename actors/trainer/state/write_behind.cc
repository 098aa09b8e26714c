#include "stagecraft/actors/trainer/state/write_behind.h"

#include <utility>

#include "stagecraft/base/process/process_end.h"

namespace stagecraft {

WriteBehind::WriteBehind(std::size_t count,
                         std::size_t most,
                         std::function<void(const at::Tensor&)> write)
    : most_(most),
      write_(std::move(write)),
      left_(count),
      thread_(Clock::current()->start([this] { run(); })) {}

WriteBehind::~WriteBehind() {
  {
    const std::scoped_lock lock(mutex_);
    dropped_ = true;
  }
  changed_.notify_all();
  const process_end::Elsewhere elsewhere;  // the end of the process may have parked the thread
  thread_ = nullptr;
}

void WriteBehind::add(at::Tensor tensor) {
  const std::size_t bytes = tensor.nbytes();
  std::unique_lock lock(mutex_);
  wait_elsewhere(lock, [&] { return failure_ != nullptr || held_ == 0 || held_ + bytes <= most_; });
  if (failure_ != nullptr) {
    std::rethrow_exception(failure_);
  }
  held_ += bytes;
  waiting_.push_back(std::move(tensor));
  changed_.notify_all();
}

/// Not elsewhere: the end of the process waits for what was handed over as a whole.
void WriteBehind::wait() {
  std::unique_lock lock(mutex_);
  Clock::current()->wait(changed_, lock, [&] { return failure_ != nullptr || left_ == 0; });
  if (failure_ != nullptr) {
    std::rethrow_exception(failure_);
  }
}

/// Waits for another thread to make the condition true. The end of the process does not wait for
/// that.
void WriteBehind::wait_elsewhere(std::unique_lock<std::mutex>& lock,
                                 const std::function<bool()>& condition) {
  if (condition()) {
    return;
  }
  {
    const process_end::Elsewhere elsewhere;
    Clock::current()->wait(changed_, lock, condition);
    lock.unlock();  // a thread that is parked here must not hold the lock
  }
  lock.lock();
}

void WriteBehind::run() {
  const process_end::AtWork at_work;
  try {
    write_all();
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    failure_ = std::current_exception();
    waiting_.clear();
  }
  changed_.notify_all();
}

void WriteBehind::write_all() {
  for (at::Tensor tensor = next(); tensor.defined(); tensor = next()) {
    const std::size_t bytes = tensor.nbytes();
    write_(tensor);
    tensor.reset();
    forget(bytes);
  }
}

/// Returns an undefined tensor after the last one, and if no more are wanted.
at::Tensor WriteBehind::next() {
  std::unique_lock lock(mutex_);
  wait_elsewhere(lock, [&] { return dropped_ || left_ == 0 || !waiting_.empty(); });
  if (dropped_ || left_ == 0) {
    return {};
  }
  at::Tensor tensor = std::move(waiting_.front());
  waiting_.pop_front();
  return tensor;
}

void WriteBehind::forget(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  held_ -= bytes;
  --left_;
  changed_.notify_all();
}

}  // namespace stagecraft
