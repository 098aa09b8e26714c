/// threads counts the threads that a run starts, and tests whether the system can start them.
#pragma once

namespace stagecraft::tools {

/// Returns the most threads that a run starts; it compiles on its own thread.
[[nodiscard]] int threads_to_run(int ranks, int threads_per_worker);

/// Starts this many threads at once to test whether it can, and ends them. A library that fails to
/// start a thread of its own would end the process, or wait forever. The heaps that glibc reserves
/// for threads stay reserved for later ones.
///
/// Errors: DeviceOutOfMemory, with the number that started; other failures of a thread.
void check_threads(int count);

}  // namespace stagecraft::tools
