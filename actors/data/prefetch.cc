#include "stagecraft/actors/data/prefetch.h"

#include <system_error>
#include <utility>

#include "stagecraft/base/error.h"
#include "stagecraft/base/process/process_end.h"
#include "stagecraft/compiler/libtorch/lack_of_memory.h"
#include "stagecraft/compiler/libtorch/thread_count.h"

namespace stagecraft {

Prefetch::Prefetch(BatchSource& source, std::int64_t epochs, int ahead)
    : source_(source), epochs_(epochs), ahead_(static_cast<std::size_t>(ahead)) {
  if (ahead_ == 0) {
    return;
  }
  try {
    thread_ = std::thread([this] { read_all(); });
  } catch (const std::system_error& error) {
    const auto lack = lack_of_memory(error, "set FitOptions::prefetch to 0");
    throw Error(lack.value_or(Error(Errc::WorkerFailed, error.what())));
  }
}

Prefetch::~Prefetch() {
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

std::optional<LabeledBatch> Prefetch::read() {
  if (!std::exchange(within_epoch_, true)) {
    source_.begin_epoch();
  }
  std::optional<LabeledBatch> batch = source_.next();
  within_epoch_ = batch.has_value();
  return batch;
}

void Prefetch::read_all() {
  try {
    {
      const process_end::AtWork at_work;
      set_own_thread_count(1);  // takes no threads from those that compute
    }
    for (std::int64_t epoch = 0; epoch < epochs_;) {
      std::optional<LabeledBatch> batch;
      {
        const process_end::AtWork at_work;
        batch = read();
      }
      epoch += batch ? 0 : 1;
      if (!put(std::move(batch))) {
        return;
      }
    }
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    failure_ = std::current_exception();
  }
  changed_.notify_all();
}

/// Returns false if no more batches are wanted.
bool Prefetch::put(std::optional<LabeledBatch> batch) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || loaded_.size() < ahead_; });
  if (stopped_) {
    return false;
  }
  loaded_.push_back(std::move(batch));
  changed_.notify_all();
  return true;
}

std::optional<LabeledBatch> Prefetch::next() {
  if (ahead_ == 0) {
    return read();
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !loaded_.empty() || failure_ != nullptr; });
  if (loaded_.empty()) {
    std::rethrow_exception(failure_);
  }
  std::optional<LabeledBatch> batch = std::move(loaded_.front());
  loaded_.pop_front();
  changed_.notify_all();
  return batch;
}

}  // namespace stagecraft
