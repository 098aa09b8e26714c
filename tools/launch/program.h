/// program runs the program after the "--" of `stagecraft launch`, and the workers of a step.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Becomes the program: `train` is ours; another one is found as a shell would find it. Returns
/// only by an error.
/// Errors: UsageFile for a program that cannot be run.
[[noreturn]] void become_program(std::vector<std::string> program);

/// Runs it to its end as a child, which inherits everything from this process and does not outlive
/// it. Returns its status as status_of().
/// Errors: DeviceOutOfMemory if no process can be made. Thread: the only one.
[[nodiscard]] ExitCode run_program(const std::vector<std::string>& program);

/// Starts `stagecraft worker` with these arguments as a child, which inherits everything from this
/// process, blocked signals too, and does not outlive it.
/// Errors: DeviceOutOfMemory if no process can be made. Thread: the only one.
[[nodiscard]] pid_t start_worker(const std::vector<std::string>& arguments);

/// Returns the status of a child that has ended as a shell reports it: 128 + the signal that ended
/// it. `status`: of waitpid().
[[nodiscard]] ExitCode status_of(int status);

/// Returns whether a signal that requests the end has come since run_program blocked signals.
[[nodiscard]] bool is_told_to_end();

/// Blocks all signals that can be blocked, in this process and in the threads that it makes later.
/// Another process gets them too and handles them.
void leave_signals();

}  // namespace stagecraft::tools
