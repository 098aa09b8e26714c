#include "stagecraft/base/shell_word.h"

namespace stagecraft {

std::string shell_word(std::string_view text) {
  std::string word = "'";
  for (const char c : text) {
    word += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return word + "'";
}

}  // namespace stagecraft
