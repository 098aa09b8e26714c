/// standard_lack_of_memory turns the exceptions that the standard library throws when memory runs
/// out into an Error. says_lack_of_memory knows those of LibTorch by their text.
#pragma once

#include <exception>
#include <optional>
#include <string_view>

#include "stagecraft/base/error.h"

namespace stagecraft {

/// Returns DeviceOutOfMemory with the advice, or nothing if `thrown` has another cause. A size
/// larger than any address and a thread that the system cannot make also count as a lack of memory.
[[nodiscard]] std::optional<Error> standard_lack_of_memory(const std::exception& thrown,
                                                           std::string_view what_to_do);

/// Returns whether this is what LibTorch says when the memory of the CPU runs out: it has no
/// exception type for that. Looks at its beginning alone, since a message may quote a file.
[[nodiscard]] bool says_lack_of_memory(std::string_view what);

}  // namespace stagecraft
