/// foreign_failure converts exceptions of LibTorch and the standard library, thrown while a model
/// is read or compiled, into an Error of ours.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "stagecraft/base/error.h"

namespace stagecraft {

/// Returns the exception's message without LibTorch's trace of calls.
[[nodiscard]] std::string foreign_text(const std::exception& thrown);

/// Returns DeviceOutOfMemory for a lack of memory, else `code` with the message "`doing`: " and the
/// exception's text.
[[nodiscard]] Error foreign_failure(const std::exception& thrown,
                                    Errc code,
                                    std::string_view doing);

}  // namespace stagecraft
