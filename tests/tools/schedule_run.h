/// Runs `stagecraft schedule` inside the test: the same function as the program's, on streams of
/// the test's own, with main's way of ending in an error.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tests/support/command.h"

namespace stagecraft::tests {

/// What the command finds at the other end of its output.
struct Screen {
  bool terminal = false;
  bool colour = false;
  int width = 100;
};

/// `words`: what follows `stagecraft schedule`. `input`: standard input.
[[nodiscard]] CommandResult run_schedule(const std::vector<std::string>& words,
                                         const std::string& input = "",
                                         const Screen& screen = {});

/// Runs "make 1f1b --devices 2 --microbatches 2 | check - | ...": each reads what the one before
/// has printed. Ends as the last one does; standard error is that of all. Words have no spaces.
[[nodiscard]] CommandResult run_schedule_line(const std::string& line,
                                              const std::string& input = "");

/// Checks that the command ended with `exit_code`, nothing on standard output and one message that
/// has all `parts`.
void check_message(const CommandResult& result,
                   int exit_code,
                   const std::vector<std::string>& parts);

}  // namespace stagecraft::tests
