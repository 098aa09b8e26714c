/// Writing to a descriptor to the last byte, whatever the system takes at once.
#pragma once

#include <span>

namespace stagecraft {

/// Returns 0, or the errno of what failed; a part may be written then.
[[nodiscard]] int write_all(int file, std::span<const char> bytes);

}  // namespace stagecraft
