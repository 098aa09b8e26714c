/// TimelineRecorder records the times at which each instruction of a step began and ended, by its
/// position in the plan.
///
/// The executor has one if TrainerOptions::record_timeline is set, and writes to it on the plan
/// thread. The thread that completes a receive records its arrival.
///
/// TL-1: recording allocates once per step and writes to one place per instruction: well under a
///       microsecond each.
/// TL-2: a receive of a step that was given up may complete late. It writes to that step's
///       arrivals, never to those of a later one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/device/device.h"
#include "stagecraft/actors/executor/device/instruction_time.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

class TimelineRecorder {
 public:
  /// `device`: the maker of the events.
  TimelineRecorder(std::size_t instructions, const Device& device)
      : instructions_(instructions), device_(device) {}

  void begin_step();
  /// Records the time at which this receive completes.
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
  /// Returns the records, by position.
  /// Requires: the device has reached all events (DV-2).
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
