/// Names of hosts as the system resolves them. Used by whoever asks for a way to another host.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <netdb.h>

namespace stagecraft {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// A port of a host at each of its addresses, the likeliest first, at least one. Errors:
/// ClusterMember for a name that this host does not know.
[[nodiscard]] Addresses resolve(const std::string& host, std::uint16_t port);

/// "10.0.0.1", "fd00::1"; empty for what is no address of either kind.
[[nodiscard]] std::string in_digits(const sockaddr& address);

}  // namespace stagecraft
