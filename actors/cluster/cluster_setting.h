/// ClusterSetting is one setting of a cluster, word for word, with the option or variable that gave
/// it.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace stagecraft {

struct ClusterSetting {
  std::string text, by;
};

/// Returns the setting of an environment variable; nothing if it is unset or empty.
[[nodiscard]] std::optional<ClusterSetting> setting_of_variable(const char* name);

/// Throws UsageArgument: "STAGECRAFT_RANKS expects a whole number of at least 1, found "two"".
[[noreturn]] void refuse(const ClusterSetting& word, std::string_view expected);

/// Returns the number. Errors: UsageArgument for a word that is no whole number from `least` to
/// `most`.
[[nodiscard]] int number_from(const ClusterSetting& word,
                              int least,
                              int most = std::numeric_limits<int>::max());

}  // namespace stagecraft
