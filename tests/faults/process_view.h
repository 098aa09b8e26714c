/// Shows the system's view of a process of this host, and acts on it from outside.
///
/// Used by the soak program, which knows only its workers' process ids.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace stagecraft::tests {

/// Returns false also for a process that has ended and whose status was not collected yet.
[[nodiscard]] bool is_running(pid_t process);

/// Returns the TCP ports of this host at which it listens, ascending.
[[nodiscard]] std::vector<std::uint16_t> listening_ports(pid_t process);

/// Returns the size of its address space in bytes; 0 if the process is gone.
[[nodiscard]] std::uint64_t address_space(pid_t process);

/// Limits its address space to this many bytes from now on. Does nothing if the process is gone.
void limit_address_space(pid_t process, std::uint64_t bytes);
void lift_address_limit(pid_t process);

}  // namespace stagecraft::tests
