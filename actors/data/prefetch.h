/// Prefetch reads a source ahead, epoch after epoch, on a thread of its own.
///
/// fit() makes one for each call, on the caller's thread, which also takes the batches. The mutex
/// guards the loaded batches.
/// PF-1: next() rethrows an exception of the source after the batches before it have been taken;
///       the source is not read again.
/// PF-2: the destructor waits for the batch that is being loaded, and for no later one.
/// PF-3: `random` is the state of LibTorch's default generator before the epoch of the batch that
///       next() returned last: with it, the same loader begins the same epoch again.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "stagecraft/actors/data/batch_source.h"

namespace stagecraft {

class Prefetch {
 public:
  /// Reads `epochs` epochs, at most `ahead` batches before they are taken. 0: next() reads on its
  /// caller's thread. Requires: `source` outlives it.
  /// Errors: WorkerFailed, DeviceOutOfMemory if no thread can be started.
  Prefetch(BatchSource& source, std::int64_t epochs, int ahead);
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// Returns the epoch's next batch, or nothing at its end; the call after that begins another
  /// epoch.
  [[nodiscard]] std::optional<LabeledBatch> next();

  /// Returns the state of PF-3. Requires: next() was called.
  [[nodiscard]] const std::shared_ptr<const std::string>& random() const { return random_; }

 private:
  struct Loaded {
    std::optional<LabeledBatch> batch;
    std::shared_ptr<const std::string> random;
  };

  [[nodiscard]] Loaded read();
  void read_all();
  [[nodiscard]] bool put(Loaded loaded);

  BatchSource& source_;
  const std::int64_t epochs_;
  const std::size_t ahead_;
  bool within_epoch_ = false;                         // used by the reading thread alone
  std::shared_ptr<const std::string> epochs_random_;  // likewise
  std::shared_ptr<const std::string> random_;         // of the batch that was taken last

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Loaded> loaded_;
  std::exception_ptr failure_;
  bool stopped_ = false;
  std::thread thread_;  // last: it uses all other members
};

}  // namespace stagecraft
