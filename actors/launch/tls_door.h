/// TlsDoor: the listening socket of a control plane, which survives a lack of descriptors.
///
/// CAF 0.17 reads the files of the credentials for every connection. Its own listener ends the
/// process when it cannot read them, which happens at the last free descriptor; with none free it
/// loops instead of waiting. Every program that reaches the port could cause both without a
/// certificate. Used by publish() (control_port.h); connections are CAF's TLS sessions.
/// TD-1: no connection takes one of the last kSpareDescriptors: it is closed unheard. This process
///       needs them for its own work, also for the files of the credentials.
/// TD-2: a connection that cannot be opened, for any reason, ends alone.
/// TD-3: an OpenSSL error of one connection is not taken for another's. OpenSSL keeps errors by
///       thread, and CAF as packaged leaves them there: one bad handshake would end every
///       connection of the loop.
/// TD-4: a port can be taken while ended connections linger at it, as they do for a minute, but not
///       while another program listens at it.
#pragma once

#include <cstdint>
#include <string>

#include <caf/actor_system.hpp>
#include <caf/expected.hpp>
#include <caf/io/doorman.hpp>

namespace stagecraft {

inline constexpr int kSpareDescriptors = 64;

/// Listens at a port of `address`, any free one for 0; doorman->port() returns it.
[[nodiscard]] caf::expected<caf::io::doorman_ptr> open_tls_door(caf::actor_system& system,
                                                                const std::string& address,
                                                                std::uint16_t port);

}  // namespace stagecraft
