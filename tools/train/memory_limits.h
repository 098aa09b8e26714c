/// How much memory this process may still take, and who says so.
///
/// Read from the kernel's files: what the machine has left without swapping, and the limits of its
/// control groups (versions 1 and 2). A limit on the address space (`ulimit -v`) counts what is
/// merely reserved, too, such as the stacks of threads.
#pragma once

#include <string>
#include <vector>

namespace stagecraft::tools {

struct MemoryLimit {
  std::string who;     ///< "the machine", "its control group /x", "ulimit -v"
  double bytes = 0.0;  ///< that may still be taken; never below 0
};

/// Returns the machine's limit, the tightest control group's and the address space's, as far as
/// there are any, the tightest first; none where the kernel tells nothing. `threads`: how many will
/// be started. `root`: of the file system; tests have their own.
[[nodiscard]] std::vector<MemoryLimit> memory_limits(int threads, const std::string& root = "");

/// Bytes that the tightest of these leaves to a thread alone; infinite where there is none.
[[nodiscard]] double memory_left();

}  // namespace stagecraft::tools
