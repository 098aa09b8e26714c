/// SubCommand: one word after `stagecraft`, with its own options and its own file.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/console.h"
#include "stagecraft/tools/exit_code.h"

namespace stagecraft::tools {

struct SubCommand {
  std::string name;
  std::string about;
  /// What to ask less of where memory lacks, to be put behind "make smaller: ".
  std::string appetite;
  /// Runs with the words after the name. Errors: Error, printed by main as one message.
  ExitCode (*run)(const std::vector<std::string>& arguments, Console& console);
};

}  // namespace stagecraft::tools
