/// Which processors a process may use: for figures that do not hang on where the system puts it.
#pragma once

#include <sys/types.h>

#include <vector>

namespace stagecraft::bench {

/// The processors that this process may use now.
[[nodiscard]] std::vector<int> usable_processors();

/// Lets all threads of a process run on these alone; threads that they start later follow them.
/// Errors: std::system_error.
void restrict_to(pid_t process, const std::vector<int>& processors);

}  // namespace stagecraft::bench
