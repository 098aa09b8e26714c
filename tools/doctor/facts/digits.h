/// digits converts an address in digits to the form that sockets take.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <netdb.h>

namespace stagecraft::tools {

using SocketAddress = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// Returns the address for TCP; null if `digits` is no address.
[[nodiscard]] SocketAddress address_of_digits(const std::string& digits, std::uint16_t port);

}  // namespace stagecraft::tools
