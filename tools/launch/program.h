/// program runs the program after the "--" of `stagecraft launch`.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Becomes the program: `train` is ours; another one is found as a shell would find it. Returns
/// only by an error.
/// Errors: UsageFile for a program that cannot be run.
[[noreturn]] void become_program(std::vector<std::string> program);

/// Runs it to its end as a child, which inherits everything from this process and does not outlive
/// it. Returns its status as a shell reports it; 128 + the signal that ended it.
/// Errors: DeviceOutOfMemory if no process can be made. Thread: the only one.
[[nodiscard]] ExitCode run_program(const std::vector<std::string>& program);

/// Returns whether a signal that requests the end has come since run_program blocked signals.
[[nodiscard]] bool is_told_to_end();

/// Blocks all signals that can be blocked, in this process and in the threads that it makes later.
/// Another process gets them too and handles them.
void leave_signals();

}  // namespace stagecraft::tools
