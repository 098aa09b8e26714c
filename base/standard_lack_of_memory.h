/// What the standard library throws when memory runs out, as an Error of ours.
#pragma once

#include <exception>
#include <optional>
#include <string_view>

#include "stagecraft/base/error.h"

namespace stagecraft {

/// Returns DeviceOutOfMemory with what to do; nothing when `thrown` is about something else. A
/// number of bytes that no address has counts as well, and so does a thread for which there is no
/// room.
[[nodiscard]] std::optional<Error> standard_lack_of_memory(const std::exception& thrown,
                                                           std::string_view what_to_do);

}  // namespace stagecraft
