/// SimDevices gives a test the simulated devices of its process, with options of its own.
#pragma once

#include <string>
#include <vector>

#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "stagecraft/tests/sim/device.h"
#include "stagecraft/tests/sim/machine.h"

namespace stagecraft::tests {

inline constexpr int kSimDevices = 4;
/// Installs them before the process's first backward, which fixes the devices that autograd knows.
inline const bool kSimInstalled = (sim::install(kSimDevices), true);

/// One at a time. All work of the devices is over at both ends of its life.
class SimDevices {
 public:
  explicit SimDevices(sim::Options options = {}) { restart(options); }
  SimDevices(const SimDevices&) = delete;
  SimDevices& operator=(const SimDevices&) = delete;
  ~SimDevices() { restart({}); }

  [[nodiscard]] static c10::Device device(int index) {
    return {sim::kType, static_cast<c10::DeviceIndex>(index)};
  }
  [[nodiscard]] static c10::Stream default_stream(int index) {
    return c10::impl::VirtualGuardImpl(sim::kType).getDefaultStream(device(index));
  }
  [[nodiscard]] static c10::Stream new_stream(int index) {
    return c10::impl::VirtualGuardImpl(sim::kType).getNewStream(device(index), 0);
  }
  [[nodiscard]] static std::int64_t host_waits() { return sim::Machine::the().host_waits(); }
  [[nodiscard]] static std::size_t issuing_threads() {
    return sim::Machine::the().issuing_threads();
  }
  [[nodiscard]] static std::int64_t pageable_copies() {
    return sim::Machine::the().pageable_copies();
  }
  [[nodiscard]] static sim::Machine::Calls calls() { return sim::Machine::the().calls(); }
  /// Waits until nothing runs, and begins anew (Machine::restart).
  static void restart(sim::Options options = {}) {
    finish();
    sim::Machine::the().restart(options);
  }
  /// Waits until nothing runs.
  static void finish() {
    for (int device = 0; device < kSimDevices; ++device) {
      sim::Machine::the().synchronize(device);
    }
  }
  /// Waits likewise. Returns what the detector found.
  [[nodiscard]] static std::vector<std::string> take_reports() {
    finish();
    return sim::Machine::the().take_reports();
  }
};

}  // namespace stagecraft::tests
