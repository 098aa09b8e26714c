/// Prefetch: reads a source ahead, epoch after epoch, on a thread of its own.
///
/// Made by fit() for one call, on the caller's thread, which takes the batches. The mutex guards
/// what has been loaded.
/// PF-1: what the source throws is thrown by next() once the batches before it have been taken;
///       nothing is read behind it.
/// PF-2: destroying one waits for the batch that is being loaded, and for none behind it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "stagecraft/actors/batch_source.h"

namespace stagecraft {

class Prefetch {
 public:
  /// Reads `epochs` of them, at most `ahead` batches before they are taken; 0: in next(), on the
  /// thread that calls it. Requires: `source` outlives it.
  /// Errors: WorkerFailed, DeviceOutOfMemory when there is no thread to be had.
  Prefetch(BatchSource& source, std::int64_t epochs, int ahead);
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// The epoch's next batch, or nothing at its end; the next call begins another.
  [[nodiscard]] std::optional<LabeledBatch> next();

 private:
  [[nodiscard]] std::optional<LabeledBatch> read();
  void read_all();
  [[nodiscard]] bool put(std::optional<LabeledBatch> batch);

  BatchSource& source_;
  const std::int64_t epochs_;
  const std::size_t ahead_;
  bool within_epoch_ = false;  // of whoever reads

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::optional<LabeledBatch>> loaded_;
  std::exception_ptr failure_;
  bool stopped_ = false;
  std::thread thread_;  // last: it uses all of them
};

}  // namespace stagecraft
