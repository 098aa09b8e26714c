/// device_name reads TrainerOptions::device.
#pragma once

#include <string>

#include <c10/core/Device.h>

#include "stagecraft/base/ids.h"

namespace stagecraft {

/// Returns the device that the name means, maybe without a number. Errors: UsageArgument for a name
/// that LibTorch does not know.
[[nodiscard]] c10::Device named_device(const std::string& name);

/// Returns the device of a rank. If the name has no number, ranks take the devices of their process
/// in turn. Errors: UsageArgument for a device of no accelerator, or that this process does not
/// have; those of named_device() and open_cuda().
[[nodiscard]] c10::Device place_of(const std::string& name, Rank rank);

}  // namespace stagecraft
