/// lack_of_memory converts the exceptions that the standard library and LibTorch throw when memory
/// runs out into an Error of ours.
#pragma once

#include <exception>
#include <optional>
#include <string_view>

#include "stagecraft/base/error.h"

namespace stagecraft {

/// Returns DeviceOutOfMemory, with the requested size if it is known and with advice; nothing if
/// `thrown` has another cause. Its own cause is what an accelerator's allocator says about sizes. A
/// size that no address space has and a thread for which there is no room also count as a lack of
/// memory.
[[nodiscard]] std::optional<Error> lack_of_memory(
    const std::exception& thrown,
    std::string_view what_to_do =
        "use smaller microbatches, fewer of them in flight, or a smaller model");

}  // namespace stagecraft
