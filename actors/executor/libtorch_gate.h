/// libtorch_gate: keeps threads of ours out of LibTorch once the process has begun to end.
///
/// LG-1: from then on every operator and every node of autograd is a gate (base/process_end.h), so
///       that a rank inside a long instruction stops at the next one. Until then it costs nothing.
#pragma once

namespace stagecraft {

/// Has the end of the process come before the end of LibTorch, as far as that has made its static
/// objects by now: called before a rank's first step and after its first of each kind.
void arm_libtorch_gate();

}  // namespace stagecraft
