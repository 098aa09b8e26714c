/// TimelineRecorder: notes when each instruction of a step began and ended, by its position in the
/// plan.
///
/// The executor has one where TrainerOptions::record_timeline asks for it, and writes to it on the
/// plan thread; only arrivals are noted by whichever thread completes a receive.
///
/// TL-1: recording allocates once per step and writes to one place per instruction: well under a
///      microsecond each.
/// TL-2: a receive of a step that was given up may complete late; it writes to that step's
///      arrivals, never to a later one's.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/device.h"
#include "stagecraft/actors/executor/instruction_time.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

class TimelineRecorder {
 public:
  /// `device`: whose events it is given.
  TimelineRecorder(std::size_t instructions, const Device& device)
      : instructions_(instructions), device_(device) {}

  void begin_step();
  /// Will note when this receive completes.
  void expect(std::size_t position, const Future<at::Tensor>& receive);
  void record(std::size_t position,
              Device::Event start,
              Device::Event end,
              std::int64_t bytes,
              std::int64_t held,
              std::int64_t in_flight) {
    InstructionTime& time = times_[position];
    time.start = start.value;
    time.end = end.value;
    time.bytes = bytes;
    time.held = held;
    time.in_flight = in_flight;
  }
  /// What was noted, by position.
  /// Requires: the device has come to all of it (DV-2).
  /// Ensures:  start <= end; arrived <= end for each receive expected.
  [[nodiscard]] std::vector<InstructionTime> take();

 private:
  using Arrivals = std::vector<std::atomic<std::int64_t>>;

  std::size_t instructions_;
  const Device& device_;
  std::vector<InstructionTime> times_;
  std::shared_ptr<Arrivals> arrivals_;
  std::vector<std::size_t> expected_;
};

}  // namespace stagecraft
