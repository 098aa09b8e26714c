/// Reports a lack of memory as one even where no code can handle it: libraries that run out of
/// memory abort the process (ZeroMQ), and so does an exception without a handler.
#pragma once

namespace stagecraft::tools {

/// From now on an abort of this process is reported as a lack of memory, with exit status 1, if
/// memory had run out: an allocation has just failed, or the limit of the address space is reached.
/// Called once by main(). Other aborts stay unchanged.
void tell_lack_of_memory_at_abort();

}  // namespace stagecraft::tools
