/// completions writes the completions of shells: one script for each, for a command with all
/// commands below it.
#pragma once

#include <string>

#include "stagecraft/tools/help/command_tree.h"

namespace stagecraft::pages {

/// Return a script for `complete -F` of bash, for `compdef` of zsh, and for `complete` of fish.
[[nodiscard]] std::string bash_completion(const CommandTree& root);
[[nodiscard]] std::string zsh_completion(const CommandTree& root);
[[nodiscard]] std::string fish_completion(const CommandTree& root);

}  // namespace stagecraft::pages
