/// SimDevices gives a test the two simulated devices of its process, with options of its own.
#pragma once

#include <string>
#include <vector>

#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "stagecraft/tests/sim/device.h"
#include "stagecraft/tests/sim/machine.h"

namespace stagecraft::tests {

/// One at a time. All work of the devices is over at both ends of its life.
class SimDevices {
 public:
  explicit SimDevices(sim::Options options = {}) {
    static const bool installed = (sim::install(kDevices), true);
    (void)installed;
    finish();
    (void)take_reports();
    sim::Machine::the().options = options;
  }
  SimDevices(const SimDevices&) = delete;
  SimDevices& operator=(const SimDevices&) = delete;
  ~SimDevices() {
    finish();
    sim::Machine::the().options = {};
  }

  [[nodiscard]] static c10::Device device(int index) {
    return {sim::kType, static_cast<c10::DeviceIndex>(index)};
  }
  [[nodiscard]] static c10::Stream new_stream(int index) {
    return c10::impl::VirtualGuardImpl(sim::kType).getNewStream(device(index), 0);
  }
  [[nodiscard]] static sim::Counts counts() { return sim::Machine::the().counts(); }
  /// Waits until nothing runs. Returns what the detector found.
  [[nodiscard]] static std::vector<std::string> take_reports() {
    finish();
    return sim::Machine::the().take_reports();
  }

 private:
  static constexpr int kDevices = 2;

  static void finish() {
    for (int device = 0; device < kDevices; ++device) {
      sim::Machine::the().synchronize(device);
    }
  }
};

}  // namespace stagecraft::tests
