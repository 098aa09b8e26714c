/// accelerator_device makes a Device of an accelerator that LibTorch knows: a CUDA GPU, or the
/// simulated device of tests. It uses LibTorch's own interface to devices and includes nothing of
/// CUDA.
#pragma once

#include <memory>

#include <c10/core/Device.h>

#include "stagecraft/actors/executor/device/device.h"

namespace stagecraft {

/// Requires: this process has the device, `place` with its number (place_of).
[[nodiscard]] std::unique_ptr<Device> accelerator_device(c10::Device place);

}  // namespace stagecraft
