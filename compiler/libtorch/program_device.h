/// program_device says on which device the tensors of a program are while it is captured, checked,
/// cut and measured. The compiler knows the device from here alone. All of it uses this file.
///
/// The device on which a rank runs its steps is actors/executor/device/device.h.
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

/// Returns a new generator of the device.
[[nodiscard]] at::Generator seeded_generator(std::uint64_t seed);

}  // namespace stagecraft
