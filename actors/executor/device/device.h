/// Device: the hardware of a rank: its streams, points in them, and its clock. A GPU replaces this
/// seam and nothing else.
///
/// The executor has one, and uses it on its plan thread alone.
/// DV-1: a stream does its work in the order in which it was given; only wait() orders work of
///       different streams.
/// DV-2: the time of an event is known once the device has reached it: ask after synchronize().
#pragma once

#include <cstdint>
#include <memory>

#include "stagecraft/compiler/plan/instruction.h"

namespace stagecraft {

class Device {
 public:
  /// A point after the work given to a stream. Only the device that made it can read it.
  struct Event {
    std::int64_t value = 0;
  };

  Device(const Device&) = delete;
  Device(Device&&) = delete;
  Device& operator=(const Device&) = delete;
  Device& operator=(Device&&) = delete;
  virtual ~Device() = default;

  /// Sends the work that LibTorch gets on this thread to `stream` from now on.
  virtual void use(Stream stream) = 0;
  /// Returns the point after everything given to `stream` so far.
  [[nodiscard]] virtual Event record(Stream stream) noexcept = 0;
  /// Makes `stream` continue only after the device has reached `event`.
  virtual void wait(Stream stream, Event event) = 0;
  /// Returns when all work is done. Earlier events may be forgotten at the next step.
  virtual void synchronize() = 0;

  /// Returns when the device reached the event. Units: nanoseconds of the host's steady clock.
  [[nodiscard]] virtual std::int64_t time_of(Event event) const = 0;

 protected:
  Device() = default;
};

/// Returns the CPU as a device. The calling thread does the work itself, so an event is a time, and
/// work to wait for was done before by the same thread.
[[nodiscard]] std::unique_ptr<Device> cpu_device();

}  // namespace stagecraft
