/// bytes_text formats a number of bytes for people. Reports of programs, steps and memory use it.
/// Any thread may call it.
#pragma once

#include <string>

namespace stagecraft {

/// Returns "512 B" or "1.5 GiB".
[[nodiscard]] std::string bytes_text(double bytes);

}  // namespace stagecraft
