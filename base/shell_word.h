/// shell_word quotes text for a POSIX shell.
#pragma once

#include <string>
#include <string_view>

namespace stagecraft {

/// Returns any text as one word of a shell.
[[nodiscard]] std::string shell_word(std::string_view text);

}  // namespace stagecraft
