/// wrapped_text lays out help for the width of the reader's terminal: paragraphs, and lists in two
/// columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stagecraft::tools {

/// Returns each line of the text wrapped by itself. An indented line is an example, which stays.
[[nodiscard]] std::string wrapped_text(std::string_view text, std::size_t width);

/// Returns a label, indented by 2, with its text from `column` on. A label that reaches the column
/// has a line of its own. On a very narrow terminal the text still gets 20 columns.
[[nodiscard]] std::string wrapped_entry(std::string_view label,
                                        std::string_view text,
                                        std::size_t column,
                                        std::size_t width);

}  // namespace stagecraft::tools
