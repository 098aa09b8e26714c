/// SubCommand: one word after `stagecraft`, with its own options and its own file.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/exit_code.h"

namespace stagecraft::tools {

struct SubCommand {
  std::string name;
  std::string about;
  /// Runs with the words after the name. Errors: Error, printed by main as one message.
  ExitCode (*run)(const std::vector<std::string>& arguments);
};

}  // namespace stagecraft::tools
