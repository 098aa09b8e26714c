/// libtorch_gate keeps our threads out of LibTorch once the process has begun to end.
///
/// LG-1: from then on every operator and every node of autograd is a gate (process_end.h), so
///       that a rank inside a long instruction stops at the next one. It costs nothing before.
#pragma once

namespace stagecraft {

/// Makes the end of the process begin before LibTorch ends, for the static objects that LibTorch
/// has made so far. Call it before a rank's first step, and after its first step of each kind.
void arm_libtorch_gate();

}  // namespace stagecraft
