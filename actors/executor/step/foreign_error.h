/// foreign_error converts an exception on a rank to an Error. A step translates exceptions of
/// LibTorch and the standard library only here, as capture does for compiling. An Error passes
/// through unchanged.
#pragma once

#include <exception>

#include "stagecraft/base/error.h"

namespace stagecraft {

/// Returns DeviceOutOfMemory for a lack of memory, DeviceFailed for other exceptions of LibTorch,
/// WorkerFailed for all others.
[[nodiscard]] Error foreign_error(const std::exception_ptr& thrown);

}  // namespace stagecraft
