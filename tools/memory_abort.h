/// Tells a lack of memory for what it is also where nobody can give anything up: libraries that run
/// out of memory abort the process (ZeroMQ), and so does an exception that no caller can take.
#pragma once

namespace stagecraft::tools {

/// From now on an abort of this process is told as a lack of memory, with exit status 1, where
/// memory had run out: an allocation has just failed, or the limit of the address space is reached.
/// Called once by main(). Every other abort stays what it is.
void tell_lack_of_memory_at_abort();

}  // namespace stagecraft::tools
