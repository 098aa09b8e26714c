/// nearest finds the known word that a mistyped word probably means: a command, an option, a
/// schedule, a field of a file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// Returns the first known word that starts with `word`; otherwise the word at the fewest edits
/// (the first of several). An edit inserts, removes or replaces a letter, or exchanges neighbors.
/// Returns nothing if every word is more than one edit away and more edits than a third of the
/// letters, because such a guess would confuse.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word,
                                                 const std::vector<std::string>& known);

/// Returns "did you mean X? ", to put before the advice, or an empty text.
[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       const std::vector<std::string>& known);

}  // namespace stagecraft
