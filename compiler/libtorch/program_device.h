/// program_device names the device of a program's tensors while it is captured, checked, cut and
/// measured. All of the compiler uses this file, and knows the device only from here.
///
/// actors/executor/device/device.h defines the device on which a rank runs its steps. In a program
/// the device is a symbol: an interpreter puts its own in its place.
#pragma once

#include <cstdint>
#include <string_view>

#include <c10/core/Device.h>

namespace at {
struct Generator;
}

namespace stagecraft {

inline constexpr c10::DeviceType kProgramDevice = c10::DeviceType::CPU;
inline constexpr std::string_view kProgramDeviceName = "the CPU";  ///< for messages

[[nodiscard]] inline bool is_program_device(const c10::Device& device) {
  return device.type() == kProgramDevice;
}

/// Returns the device's generator that operators draw from if they are given none.
[[nodiscard]] const at::Generator& default_generator();

/// Returns a new generator of the program's device, or of another.
[[nodiscard]] at::Generator seeded_generator(std::uint64_t seed,
                                             const c10::Device& device = kProgramDevice);

}  // namespace stagecraft
