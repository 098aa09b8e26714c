/// What the system knows of a process of this host, and what may be done to it from outside.
///
/// Used by the soak program, which knows its workers by their process ids alone.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace stagecraft::tests {

/// False too for one that has ended and that nobody has asked for its status yet.
[[nodiscard]] bool is_running(pid_t process);

/// TCP ports of this host at which it listens, ascending.
[[nodiscard]] std::vector<std::uint16_t> listening_ports(pid_t process);

/// Bytes of addresses that it has; 0 for a process that is gone.
[[nodiscard]] std::uint64_t address_space(pid_t process);

/// From now on it gets no addresses beyond so many bytes. Nothing happens to one that is gone.
void limit_address_space(pid_t process, std::uint64_t bytes);
void lift_address_limit(pid_t process);

}  // namespace stagecraft::tests
