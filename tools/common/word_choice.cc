#include "stagecraft/tools/common/word_choice.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stagecraft::tools {

std::string words_text(const std::vector<std::string>& words) {
  if (words.size() < 2) {
    return words.empty() ? "" : words.front();
  }
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  return CLI::Validator(
      [words](std::string& word) {
        return std::ranges::find(words, word) != words.end()
                   ? std::string()
                   : fmt::format("expects {}, found '{}'", words_text(words), word);
      },
      /*validator_desc=*/"");
}

}  // namespace stagecraft::tools
