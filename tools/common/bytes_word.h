/// bytes_word reads a number of bytes as people write it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace stagecraft::tools {

/// Returns the number at the beginning of a word, and what follows it; nothing if there is none.
[[nodiscard]] std::optional<std::pair<double, std::string_view>> leading_number(
    std::string_view word);

/// Returns the bytes of "2G", "500M" or "1e9", in powers of 1024.
/// Errors: UsageArgument naming `command` and `option`.
[[nodiscard]] double bytes_of_word(std::string_view command,
                                   const std::string& option,
                                   const std::string& word);

}  // namespace stagecraft::tools
