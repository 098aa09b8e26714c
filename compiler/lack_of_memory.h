/// What the standard library and LibTorch throw when memory runs out, as one Error of ours.
#pragma once

#include <exception>
#include <optional>
#include <string_view>

#include "stagecraft/base/error.h"

namespace stagecraft {

/// Returns DeviceOutOfMemory, with what was asked for where that is known, and what to do; nothing
/// when `thrown` is about something else. A number of bytes that no address has counts as well, and
/// so does a thread for which there is no room.
[[nodiscard]] std::optional<Error> lack_of_memory(
    const std::exception& thrown,
    std::string_view what_to_do =
        "use smaller microbatches, fewer of them in flight, or a smaller model");

}  // namespace stagecraft
