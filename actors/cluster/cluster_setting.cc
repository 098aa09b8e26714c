#include "stagecraft/actors/cluster/cluster_setting.h"

#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {

std::optional<ClusterSetting> setting_of_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt
                                            : std::optional(ClusterSetting{value, name});
}

[[noreturn]] void refuse(const ClusterSetting& word, std::string_view expected) {
  throw Error(Errc::UsageArgument,
              fmt::format("{} expects {}, found \"{}\"", word.by, expected, word.text));
}

int number_from(const ClusterSetting& word, int least, int most) {
  const std::string& text = word.text;
  int number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc{} || end != text.data() + text.size() || number < least || number > most) {
    refuse(word,
           most == std::numeric_limits<int>::max()
               ? fmt::format("a whole number of at least {}", least)
               : fmt::format("a whole number from {} to {}", least, most));
  }
  return number;
}

}  // namespace stagecraft
