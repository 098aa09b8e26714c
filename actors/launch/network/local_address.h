/// local_address finds the address at which others reach this host. Drivers and workers that listen
/// use it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stagecraft/actors/launch/network/hosts.h"

namespace stagecraft {

/// Returns the address, in digits, from which this host sends to `host`. Sends nothing. Errors:
/// ClusterMember if the name is unknown or there is no route to it.
[[nodiscard]] std::string address_towards(const std::string& host);

/// Returns the address from which this host sends to the first of `hosts` that is another host:
/// this host may be among them, and its own name may mean loopback. Returns loopback if there is no
/// other.
/// Errors: as above, if no other host is known.
[[nodiscard]] std::string address_towards(const std::vector<Host>& hosts);

/// Returns the address that `interface` names: an interface ("eth1"), preferably its IPv4 address,
/// or an address of this host in digits. Errors: UsageArgument, with the existing interfaces.
[[nodiscard]] std::string address_of_interface(const std::string& interface);

/// Returns whether no other host can reach the address.
[[nodiscard]] bool is_loopback(const std::string& address);

/// Returns the name for resolvers: without the "user@" of ssh.
[[nodiscard]] std::string host_name(const Host& host);

/// Returns the address at which workers on `hosts` reach this host: that of `interface`, or, if it
/// is empty, that of address_towards. Errors: those of the two above.
[[nodiscard]] std::string address_for_hosts(const std::string& interface,
                                            const std::vector<Host>& hosts);

/// Returns "10.0.0.1:4123", "[fd00::1]:4123".
[[nodiscard]] std::string host_and_port(const std::string& address, std::uint16_t port);

/// Returns "tcp://10.0.0.1:*", as transports bind it.
[[nodiscard]] std::string any_port_of(const std::string& address);

}  // namespace stagecraft
