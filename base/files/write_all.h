/// write_all writes all bytes to a descriptor, however few the system takes at once.
#pragma once

#include <span>

namespace stagecraft {

/// Returns 0, or the errno of the failure; then a part may have been written.
[[nodiscard]] int write_all(int file, std::span<const char> bytes);

}  // namespace stagecraft
