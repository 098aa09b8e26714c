#include "stagecraft/actors/cluster/given_word.h"

#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {

std::optional<GivenWord> variable_word(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional(GivenWord{value, name});
}

[[noreturn]] void refuse(const GivenWord& word, std::string_view expected) {
  throw Error(Errc::UsageArgument,
              fmt::format("{} expects {}, found \"{}\"", word.by, expected, word.text));
}

int number_from(const GivenWord& word, int least, int most) {
  const std::string& text = word.text;
  int number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc{} || end != text.data() + text.size() || number < least || number > most) {
    refuse(word, fmt::format("a whole number of at least {}", least));
  }
  return number;
}

}  // namespace stagecraft
