/// resolve resolves names of hosts as the system does, to find a way to another host.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <netdb.h>

namespace stagecraft {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// Returns a port of a host at each of its addresses, the most likely first, at least one. Errors:
/// ClusterMember for a name that this host does not know.
[[nodiscard]] Addresses resolve(const std::string& host, std::uint16_t port);

/// Returns "10.0.0.1", "fd00::1"; empty for another kind of address.
[[nodiscard]] std::string in_digits(const sockaddr& address);

}  // namespace stagecraft
