/// completion_text has text that the scripts of all shells need.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/help/command_tree.h"

namespace stagecraft::pages {

[[nodiscard]] std::string joined(const std::vector<std::string>& words, const std::string& between);

/// Returns the text in single quotes. `quote`: replaces a quote within them.
[[nodiscard]] std::string quoted(const std::string& text, const std::string& quote = "'\\''");

/// Returns the words that can follow a command: those of its commands, or none.
[[nodiscard]] std::vector<std::string> words_below(const CommandTree& command);

}  // namespace stagecraft::pages
