/// find_listener is the first step of a worker: it finds its driver by name, even before the driver
/// is there, and even if only some of the name's addresses lead to it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace stagecraft {

/// Returns the address of `host`, in digits, with a listener at the port. Waits until the name is
/// known and a listener is there. It knocks: the listener sees a connection that says nothing.
/// Errors: ClusterTimeout after `patience`, with every address and its last failure.
[[nodiscard]] std::string find_listener(const std::string& host,
                                        std::uint16_t port,
                                        std::chrono::milliseconds patience);

}  // namespace stagecraft
