/// install makes the simulated devices LibTorch's accelerator, of the type PrivateUse1: "sim:0",
/// "sim:1" and so on. Tensors, streams, events, guards and generators work as those of other
/// devices do; operators are those of the CPU (operators.cc), given to the current stream.
/// A copy to the host always waits, so a wait that is missing after one is not found.
/// SO-1: the host learns no number. Sizes of results come from the operator's meta kernel, or from
///       a call on zeros.
/// SO-2: an operator whose result's size depends on numbers waits for its stream, as CUDA's does.
/// SO-3: a random operator takes its part of the generator's numbers when it is issued. One that
///       takes no generator is refused.
#pragma once

#include <c10/core/Device.h>

namespace stagecraft::sim {

inline constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

/// Requires: called once, before LibTorch is asked for an accelerator.
void install(int devices);

}  // namespace stagecraft::sim
