/// How `stagecraft launch` runs what stands behind its "--".
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/exit_code.h"

namespace stagecraft::tools {

/// Becomes the program: `train` is ours, anything else is found as a shell would. Returns only by
/// an error. Errors: UsageFile for one that cannot be run.
[[noreturn]] void become_program(std::vector<std::string> program);

/// Runs it as a child, which has all that this process has and does not outlive it, to its end.
/// Returns its status as a shell says it; 128 + the signal that ended it.
/// Errors: DeviceOutOfMemory when there is no process left for it. Thread: the only one.
[[nodiscard]] ExitCode run_program(const std::vector<std::string>& program);

/// Whether a signal has come that asks for the end since signals are held back (run_program).
[[nodiscard]] bool is_told_to_end();

/// This process, and the threads that it makes from now on, hears of no signal any more that can be
/// held back: they are answered by another one, which gets them too.
void leave_signals();

}  // namespace stagecraft::tools
