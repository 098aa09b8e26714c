/// nccl_library finds NVIDIA's NCCL, the library libnccl.so.2, in this process or on this machine.
#pragma once

#include <memory>

#include "stagecraft/actors/executor/nccl/nccl.h"

namespace stagecraft {

/// Returns NCCL for CUDA devices, the same one every time; null if this machine has no library, or
/// one older than 2.22. Logs once which it is, or why there is none. Requires: CUDA is open.
[[nodiscard]] std::shared_ptr<Nccl> nccl_library();

}  // namespace stagecraft
