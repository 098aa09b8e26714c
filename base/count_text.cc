#include "stagecraft/base/count_text.h"

#include <fmt/format.h>

namespace stagecraft {
namespace {

std::string plural_of_word(std::string_view word) {
  constexpr std::string_view kVowels = "aeiou";
  if (word.ends_with('y') && word.size() > 1 &&
      kVowels.find(word[word.size() - 2]) == std::string_view::npos) {
    return fmt::format("{}ies", word.substr(0, word.size() - 1));
  }
  const bool hisses =
      word.ends_with('s') || word.ends_with('x') || word.ends_with("ch") || word.ends_with("sh");
  return fmt::format("{}{}", word, hisses ? "es" : "s");
}

}  // namespace

std::string plural_of(std::string_view noun) {
  const std::size_t of = noun.find(" of ");
  if (of == std::string_view::npos) {
    return plural_of_word(noun);
  }
  return plural_of_word(noun.substr(0, of)).append(noun.substr(of));
}

std::string count_text(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}", count, count == 1 ? std::string(noun) : plural_of(noun));
}

}  // namespace stagecraft
