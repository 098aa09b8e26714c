/// Which address of this host others reach it at. Used by drivers and workers that listen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stagecraft/actors/hosts.h"

namespace stagecraft {

/// The address, in digits, from which this host sends to `host`; nothing is sent. Errors:
/// ClusterMember where the name is unknown or no way leads there.
[[nodiscard]] std::string address_towards(const std::string& host);

/// The same towards the first of some hosts that is another one: this host may be among them, and
/// its own name stand for loopback. Loopback where there is no other.
/// Errors: as above, where no other host is known.
[[nodiscard]] std::string address_towards(const std::vector<Host>& hosts);

/// `interface`: the name of one ("eth1"), of whose addresses one of IPv4 is preferred, or an
/// address of this host in digits. Errors: UsageArgument, with the interfaces that there are.
[[nodiscard]] std::string address_of_interface(const std::string& interface);

/// Whether no other host reaches it.
[[nodiscard]] bool is_loopback(const std::string& address);

/// As resolvers take it: without the "user@" of ssh.
[[nodiscard]] std::string host_name(const Host& host);

/// Where workers on `hosts` reach this host: at `interface`, as above, or where it is empty as
/// address_towards says. Errors: those of the two above.
[[nodiscard]] std::string address_for_hosts(const std::string& interface,
                                            const std::vector<Host>& hosts);

/// "10.0.0.1:4123", "[fd00::1]:4123".
[[nodiscard]] std::string host_and_port(const std::string& address, std::uint16_t port);

/// "tcp://10.0.0.1:*", as transports bind it.
[[nodiscard]] std::string any_port_of(const std::string& address);

}  // namespace stagecraft
