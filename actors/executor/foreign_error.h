/// foreign_error: what was thrown on a rank, as an Error. The one border of a step at which
/// LibTorch's and the standard library's exceptions are translated, as capture is of compiling;
/// what is an Error already passes through.
#pragma once

#include <exception>

#include "stagecraft/base/error.h"

namespace stagecraft {

/// DeviceOutOfMemory for a lack of memory, DeviceFailed for what else LibTorch throws, WorkerFailed
/// for the rest.
[[nodiscard]] Error foreign_error(const std::exception_ptr& thrown);

}  // namespace stagecraft
