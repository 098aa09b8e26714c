/// install makes the simulated devices LibTorch's accelerator, of the type PrivateUse1: "sim:0",
/// "sim:1" and so on. Tensors, streams, events, guards and generators work as those of other
/// devices do; operators are those of the CPU (operators.cc), given to the current stream.
#pragma once

#include <c10/core/Device.h>

namespace stagecraft::sim {

inline constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

/// Requires: called once, before LibTorch is asked for an accelerator.
void install(int devices);

}  // namespace stagecraft::sim
