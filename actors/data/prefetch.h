/// Prefetch reads a source ahead, epoch after epoch, on a thread of its own.
///
/// fit() makes one for each call, on the caller's thread, which also takes the batches. The mutex
/// guards the loaded batches.
/// PF-1: next() rethrows an exception of the source after the batches before it have been taken;
///       the source is not read again.
/// PF-2: the destructor waits for the batch that is being loaded, and for no later one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
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

 private:
  [[nodiscard]] std::optional<LabeledBatch> read();
  void read_all();
  [[nodiscard]] bool put(std::optional<LabeledBatch> batch);

  BatchSource& source_;
  const std::int64_t epochs_;
  const std::size_t ahead_;
  bool within_epoch_ = false;  // used by the reading thread alone

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::optional<LabeledBatch>> loaded_;
  std::exception_ptr failure_;
  bool stopped_ = false;
  std::thread thread_;  // last: it uses all other members
};

}  // namespace stagecraft
