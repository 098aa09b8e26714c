/// choose: returns the meaning of an option whose value is one of a few words.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "stagecraft/tools/common/command_line.h"

namespace stagecraft::tools {

/// `kinds`: the meanings by their words, in the order in which a message names them. `command`: as
/// in wrong_usage(). Errors: UsageArgument for another word.
template <class Kind>
[[nodiscard]] Kind choose(const std::string& command,
                          const std::string& option,
                          const std::string& word,
                          const std::vector<std::pair<std::string, Kind>>& kinds) {
  std::string names;
  for (const auto& [name, kind] : kinds) {
    if (name == word) {
      return kind;
    }
    names += (names.empty() ? "" : " or ") + name;
  }
  wrong_usage(command, option + " expects " + names + ", found '" + word + "'");
}

}  // namespace stagecraft::tools
