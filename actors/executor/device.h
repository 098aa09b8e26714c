/// Device: what a rank computes on: its streams, points in them, and its clock. The one seam that a
/// GPU replaces.
///
/// The executor has one, and uses it on its plan thread alone.
/// DV-1: work is given to a stream and done in its order; between streams only wait() orders.
/// DV-2: what an event says is known once the device has come to it: ask after synchronize().
#pragma once

#include <cstdint>
#include <memory>

#include "stagecraft/compiler/plan/instruction.h"

namespace stagecraft {

class Device {
 public:
  /// A point behind what was given to a stream. Only the device that made it knows what is in it.
  struct Event {
    std::int64_t value = 0;
  };

  Device(const Device&) = delete;
  Device(Device&&) = delete;
  Device& operator=(const Device&) = delete;
  Device& operator=(Device&&) = delete;
  virtual ~Device() = default;

  /// What is given to LibTorch on this thread goes to `stream` from now on.
  virtual void use(Stream stream) = 0;
  /// Returns the point behind everything given to `stream` so far.
  [[nodiscard]] virtual Event record(Stream stream) noexcept = 0;
  /// `stream` goes on only when the device has come to `event`.
  virtual void wait(Stream stream, Event event) = 0;
  /// Returns when everything given to it is done; events of before may be forgotten at the next
  /// step.
  virtual void synchronize() = 0;

  /// When the device came to the event. Units: nanoseconds of the host's steady clock.
  [[nodiscard]] virtual std::int64_t time_of(Event event) const = 0;

 protected:
  Device() = default;
};

/// The processor: whoever gives it work does the work, so that an event is a time, and what is to
/// be waited for has been done before by the same thread.
[[nodiscard]] std::unique_ptr<Device> cpu_device();

}  // namespace stagecraft
