/// GivenWord is one setting of a cluster, word for word, with the option or variable that gave it.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace stagecraft {

struct GivenWord {
  std::string text, by;
};

/// Returns the word of an environment variable; nothing if it is unset or empty.
[[nodiscard]] std::optional<GivenWord> variable_word(const char* name);

/// Throws UsageArgument: "STAGECRAFT_RANKS expects a whole number of at least 1, found "two"".
[[noreturn]] void refuse(const GivenWord& word, std::string_view expected);

/// Returns the number. Errors: UsageArgument for a word that is no whole number of at least
/// `least`.
[[nodiscard]] int number_from(const GivenWord& word,
                              int least,
                              int most = std::numeric_limits<int>::max());

}  // namespace stagecraft
