/// foreign_failure: what LibTorch and the standard library throw while a model is read or compiled,
/// as one Error of ours.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "stagecraft/base/error.h"

namespace stagecraft {

/// What it says, without LibTorch's trace of calls.
[[nodiscard]] std::string foreign_text(const std::exception& thrown);

/// DeviceOutOfMemory for a lack of memory, else `code` with "`doing`: " and what it says.
[[nodiscard]] Error foreign_failure(const std::exception& thrown,
                                    Errc code,
                                    std::string_view doing);

}  // namespace stagecraft
