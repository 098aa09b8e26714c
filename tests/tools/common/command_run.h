/// Runs a command inside the test: the same function as the program's, on streams of the test, with
/// main's handling of errors.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tests/support/command.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tests {

/// Describes the other end of the command's output.
struct Screen {
  bool terminal = false;
  bool color = false;
  int width = 100;
};

using Command = tools::ExitCode (*)(const std::vector<std::string>& words, tools::Console& console);

/// `words`: the words after the command's name. `input`: standard input.
[[nodiscard]] CommandResult run_in_test(Command command,
                                        const std::vector<std::string>& words,
                                        const std::string& input = "",
                                        const Screen& screen = {});

/// Checks that the command ended with `exit_code`, nothing on standard output and one message that
/// has all `parts`.
void check_message(const CommandResult& result,
                   int exit_code,
                   const std::vector<std::string>& parts);

}  // namespace stagecraft::tests
