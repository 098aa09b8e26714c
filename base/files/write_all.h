/// write_all writes all bytes to a descriptor, even if the system takes a few at a time.
#pragma once

#include <span>

#include "stagecraft/base/files/disk.h"

namespace stagecraft {

/// Returns 0, or the errno of the failure; then a part may have been written.
[[nodiscard]] int write_all(int file, std::span<const char> bytes, Disk& disk = *Disk::system());

}  // namespace stagecraft
