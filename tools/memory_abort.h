/// memory_abort reports a lack of memory even where no code can handle it: libraries that run out
/// of memory abort the process (ZeroMQ), and so does an exception without a handler.
#pragma once

namespace stagecraft::tools {

/// Begins to watch for aborts: from now on an abort of this process is reported as a lack of
/// memory, with exit status 1, if memory had run out. That is so if an allocation has just failed,
/// or if the limit of the address space is reached. main() calls it once. Other aborts stay
/// unchanged.
void tell_lack_of_memory_at_abort();

}  // namespace stagecraft::tools
