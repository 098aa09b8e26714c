/// `stagecraft schedule` inside the test, as run_in_test runs it.
#pragma once

#include "stagecraft/tests/tools/command_run.h"

namespace stagecraft::tests {

/// `words`: what follows `stagecraft schedule`. `input`: standard input.
[[nodiscard]] CommandResult run_schedule(const std::vector<std::string>& words,
                                         const std::string& input = "",
                                         const Screen& screen = {});

/// Runs "make 1f1b --devices 2 --microbatches 2 | check - | ...": each reads what the one before
/// has printed. Ends as the last one does; standard error is that of all. Words have no spaces.
[[nodiscard]] CommandResult run_schedule_line(const std::string& line,
                                              const std::string& input = "");

}  // namespace stagecraft::tests
