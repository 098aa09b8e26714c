/// find_listener: what a worker begins with: it finds its driver by name, also before that is
/// there, and where the name has several addresses of which not all lead to it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace stagecraft {

/// The address of `host`, in digits, at which somebody listens to the port. Waits for the name to
/// be known and for a listener; knocks, which the listener sees as a connection without a word.
/// Errors: ClusterTimeout after `patience`, with every address and what was wrong with it last.
[[nodiscard]] std::string find_listener(const std::string& host,
                                        std::uint16_t port,
                                        std::chrono::milliseconds patience);

}  // namespace stagecraft
