/// pinning sets which processors a process may use, so that figures do not depend on where the
/// system puts it.
#pragma once

#include <sys/types.h>

#include <vector>

namespace stagecraft::bench {

/// Returns the processors that this process may use now.
[[nodiscard]] std::vector<int> usable_processors();

/// Lets all threads of a process run only on these processors. Threads that they start later
/// inherit this.
/// Errors: std::system_error.
void restrict_to(pid_t process, const std::vector<int>& processors);

}  // namespace stagecraft::bench
