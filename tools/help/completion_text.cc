#include "stagecraft/tools/help/completion_text.h"

namespace stagecraft::pages {

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : between) + word;
  }
  return text;
}

std::string quoted(const std::string& text, const std::string& quote) {
  std::string all = "'";
  for (const char c : text) {
    all += c == '\'' ? quote : std::string(1, c);
  }
  return all + "'";
}

std::vector<std::string> words_below(const CommandTree& command) {
  std::vector<std::string> words;
  for (const CommandTree& below : command.commands) {
    words.push_back(below.word());
  }
  return words;
}

}  // namespace stagecraft::pages
