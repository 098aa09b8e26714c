/// TlsDoor: the listening socket of a control plane, which descriptors that run out do not end.
///
/// CAF 0.17 reads the files of the credentials for every connection, and its own listener ends the
/// process when it cannot, which is what happens at the last free descriptor; with none free it
/// goes round and round instead of waiting. Whoever reaches the port could cause both without a
/// certificate. Used by publish() (control_port.h); connections are CAF's TLS sessions.
/// TD-1: no connection takes one of the last kSpareDescriptors: it is closed unheard. They are for
///       what this process does itself, the credentials' files among it.
/// TD-2: a connection that cannot be opened, for whatever reason, ends alone.
/// TD-3: what OpenSSL has to say of one connection is not taken for another's. It keeps errors by
///       thread, and CAF as packaged leaves them there: one bad handshake would end every
///       connection of the loop.
/// TD-4: a port is taken also while connections that have ended there linger, as they do for a
///       minute; not while somebody listens at it.
#pragma once

#include <cstdint>
#include <string>

#include <caf/actor_system.hpp>
#include <caf/expected.hpp>
#include <caf/io/doorman.hpp>

namespace stagecraft {

inline constexpr int kSpareDescriptors = 64;

/// Listens at a port of `address`, any free one for 0; doorman->port() says which.
[[nodiscard]] caf::expected<caf::io::doorman_ptr> open_tls_door(caf::actor_system& system,
                                                                const std::string& address,
                                                                std::uint16_t port);

}  // namespace stagecraft
