#include "stagecraft/actors/data/prefetch.h"

#include <system_error>
#include <utility>

#include "stagecraft/base/error.h"
#include "stagecraft/base/process/process_end.h"
#include "stagecraft/compiler/libtorch/lack_of_memory.h"
#include "stagecraft/compiler/libtorch/random.h"
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

Prefetch::Loaded Prefetch::read() {
  if (!std::exchange(within_epoch_, true)) {
    const DefaultRandomTurn turn;
    epochs_random_ = std::make_shared<const std::string>(default_random_state());
    source_.begin_epoch();
  }
  std::optional<LabeledBatch> batch = source_.next();
  within_epoch_ = batch.has_value();
  return {std::move(batch), epochs_random_};
}

void Prefetch::read_all() {
  try {
    {
      const process_end::AtWork at_work;
      set_own_thread_count(1);  // takes no threads from those that compute
    }
    for (std::int64_t epoch = 0; epoch < epochs_;) {
      Loaded loaded;
      {
        const process_end::AtWork at_work;
        loaded = read();
      }
      epoch += loaded.batch ? 0 : 1;
      if (!put(std::move(loaded))) {
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
bool Prefetch::put(Loaded loaded) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || loaded_.size() < ahead_; });
  if (stopped_) {
    return false;
  }
  loaded_.push_back(std::move(loaded));
  changed_.notify_all();
  return true;
}

std::optional<LabeledBatch> Prefetch::next() {
  if (ahead_ == 0) {
    Loaded loaded = read();
    random_ = loaded.random;
    return std::move(loaded.batch);
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !loaded_.empty() || failure_ != nullptr; });
  if (loaded_.empty()) {
    std::rethrow_exception(failure_);
  }
  Loaded loaded = std::move(loaded_.front());
  loaded_.pop_front();
  changed_.notify_all();
  random_ = loaded.random;
  return std::move(loaded.batch);
}

}  // namespace stagecraft
