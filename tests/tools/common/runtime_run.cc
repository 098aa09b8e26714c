#include "stagecraft/tests/tools/common/runtime_run.h"

#include "stagecraft/tests/tools/common/command_run.h"
#include "stagecraft/tools/runtime_commands.h"

namespace stagecraft::tests {

CommandResult run_here(const std::vector<std::string>& words) {
  return run_in_test(&tools::run_runtime_command, {words.begin() + 1, words.end()});
}

}  // namespace stagecraft::tests
