/// bytes_text: a number of bytes as people read it. Reports of programs, steps and memory use it;
/// any thread.
#pragma once

#include <string>

namespace stagecraft {

/// Returns "512 B" or "1.5 GiB".
[[nodiscard]] std::string bytes_text(double bytes);

}  // namespace stagecraft
