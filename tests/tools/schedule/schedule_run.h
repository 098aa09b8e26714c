/// Runs `stagecraft schedule` inside the test, as run_in_test does.
#pragma once

#include "stagecraft/tests/tools/common/command_run.h"

namespace stagecraft::tests {

/// `words`: the words after `stagecraft schedule`. `input`: standard input.
[[nodiscard]] CommandResult run_schedule(const std::vector<std::string>& words,
                                         const std::string& input = "",
                                         const Screen& screen = {});

/// Runs "make 1f1b --devices 2 --microbatches 2 | check - | ...": each command reads what the one
/// before has printed. Returns the exit code of the last, and the standard error of all. Words have
/// no spaces.
[[nodiscard]] CommandResult run_schedule_line(const std::string& line,
                                              const std::string& input = "");

}  // namespace stagecraft::tests
