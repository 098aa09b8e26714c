/// StepTimes adds up how one rank spends the seconds of a step.
///
/// The executor makes it and uses it on its plan thread. Events of the device measure computation,
/// so that it is the time of the work and not of its submission. The host's clock measures waiting.
#pragma once

#include <chrono>
#include <vector>

#include "stagecraft/actors/executor/device/device.h"
#include "stagecraft/actors/executor/step/step_record.h"

namespace stagecraft {

class StepTimes {
 public:
  /// Part is one of the times of RankTimes.
  using Part = double RankTimes::*;

  /// Adds the device's time between construction and destruction to `part`.
  class DeviceSpan {
   public:
    DeviceSpan(StepTimes& times, Part part)
        : times_(times), part_(part), begin_(times.device_.record(kCompute)) {}
    ~DeviceSpan() { times_.spans_.push_back({part_, begin_, times_.device_.record(kCompute)}); }
    DeviceSpan(const DeviceSpan&) = delete;
    DeviceSpan& operator=(const DeviceSpan&) = delete;

   private:
    StepTimes& times_;
    Part part_;
    Device::Event begin_;
  };

  /// Adds the host's time between construction and destruction to `part`.
  class HostSpan {
   public:
    HostSpan(StepTimes& times, Part part) : seconds_(times.sums_.*part), begin_(Clock::now()) {}
    ~HostSpan() { seconds_ += std::chrono::duration<double>(Clock::now() - begin_).count(); }
    HostSpan(const HostSpan&) = delete;
    HostSpan& operator=(const HostSpan&) = delete;

   private:
    using Clock = std::chrono::steady_clock;
    double& seconds_;
    Clock::time_point begin_;
  };

  /// `most`: the largest number of spans in a step.
  StepTimes(Device& device, std::size_t most) : device_(device) { spans_.reserve(most); }

  void begin_step() {
    sums_ = {};
    spans_.clear();
  }

  [[nodiscard]] DeviceSpan compute(Part part) { return {*this, part}; }
  [[nodiscard]] HostSpan pass(Part part) { return {*this, part}; }

  /// Returns the sums. Requires: the device has reached all events (DV-2).
  [[nodiscard]] RankTimes take() {
    constexpr double kNanosecond = 1e-9;
    for (const Span& span : spans_) {
      sums_.*span.part += kNanosecond * static_cast<double>(device_.time_of(span.end) -
                                                            device_.time_of(span.begin));
    }
    return sums_;
  }

 private:
  struct Span {
    Part part;
    Device::Event begin, end;
  };

  Device& device_;
  RankTimes sums_;
  std::vector<Span> spans_;
};

}  // namespace stagecraft
