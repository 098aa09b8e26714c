/// nearest finds the known word that a mistyped word probably means: a command, an option, a
/// schedule, a field of a file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// Returns the first known word that starts with `word`; otherwise the word at the smallest edit
/// distance (the first of several). Returns nothing if every distance is more than a third of the
/// word's letters and more than two edits, because such a guess would confuse.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word,
                                                 const std::vector<std::string>& known);

/// Returns "did you mean X? ", to put before the advice, or an empty text.
[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       const std::vector<std::string>& known);

}  // namespace stagecraft
