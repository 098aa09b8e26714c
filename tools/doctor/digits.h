/// An address in digits as sockets take it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <netdb.h>

namespace stagecraft::tools {

using SocketAddress = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// For TCP. Null for what is no address in digits.
[[nodiscard]] SocketAddress address_of_digits(const std::string& digits, std::uint16_t port);

}  // namespace stagecraft::tools
