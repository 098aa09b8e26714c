/// printable makes text of a file, a peer or an option safe to print: a message must not change the
/// state of a terminal, or be no UTF-8. Error uses it for every message, so that no reader has to.
/// Any thread may call it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stagecraft {

/// Returns the text with control characters and bytes that are no UTF-8 written as "\x1b".
/// `kept`: control characters that remain. Applied to its own result, it changes nothing.
[[nodiscard]] std::string printable(std::string_view text, std::string_view kept = {});

/// Returns the longest beginning of at most so many bytes that ends between characters of UTF-8.
[[nodiscard]] std::string_view beginning_of(std::string_view text, std::size_t bytes);

}  // namespace stagecraft
