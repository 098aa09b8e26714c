/// Which known word a mistyped one was probably meant to be: a command, an option, a schedule, a
/// field of a file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// Returns the first known word that `word` begins, else the one at the smallest edit distance (the
/// first of several). None when all are further away than half the word's length (at least two
/// edits), where a guess would only confuse.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word,
                                                 const std::vector<std::string>& known);

/// Returns "did you mean X? " or nothing: ready to be put before what to do.
[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       const std::vector<std::string>& known);

}  // namespace stagecraft
