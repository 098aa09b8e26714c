/// memory_limits finds how much memory this process may still take, and which limit applies.
///
/// It reads the kernel's files: memory that the machine has left without swapping, and the limits
/// of the process's control groups (versions 1 and 2). A limit on the address space (`ulimit -v`)
/// also counts memory that is only reserved, such as thread stacks.
#pragma once

#include <string>
#include <vector>

namespace stagecraft::tools {

struct MemoryLimit {
  std::string who;       ///< "the machine", "its control group /x", "ulimit -v"
  double bytes = 0.0;    ///< that the process may still take; never below 0
  bool of_gpus = false;  ///< of GPUs' memory, not of the machine's
};

/// Returns the limits of the machine, of the tightest control group and of the address space, if
/// they exist, the tightest first; none if the kernel reports nothing. `threads`: how many will
/// start. `root`: of the file system; tests have their own.
[[nodiscard]] std::vector<MemoryLimit> memory_limits(int threads, const std::string& root = "");

/// Returns the bytes that the tightest limit leaves to a single thread; infinite if there is none.
[[nodiscard]] double memory_left();

}  // namespace stagecraft::tools
