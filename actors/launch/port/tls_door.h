/// TlsDoor is the listening socket of a control plane. It survives a lack of descriptors and any
/// number of silent connections.
///
/// CAF's own listener ends the process at the last free descriptor; with none free it loops instead
/// of waiting. Any program that reaches the port could cause both without a certificate. publish()
/// (control_port.h) uses TlsDoor; its connections are TlsSessions.
/// TD-1: no connection takes one of the last kSpareDescriptors: it is closed unheard. This process
///       needs them for its own work.
/// TD-2: a connection that cannot be opened, for any reason, ends alone.
/// TD-3: at most kMostWaiting connections are in their handshake. If another one comes, the oldest
///       is closed. A member needs only moments for its handshake.
/// TD-4: a port can be taken while ended connections linger at it, as they do for a minute, but not
///       while another program listens at it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <caf/actor_system.hpp>
#include <caf/expected.hpp>
#include <caf/io/doorman.hpp>

#include "stagecraft/actors/launch/port/node_guard.h"

namespace stagecraft {

inline constexpr std::size_t kMostWaiting = 1024;
/// Bounds the memory of all connections before their handshakes are done; measured (TLS-4).
inline constexpr std::int64_t kMostMebibytesOfStrangers = 64;

/// Listens at a port of `address`, any free one for 0; doorman->port() returns it. `nodes` gets the
/// nodes that connect.
/// Errors: those of TlsContext.
[[nodiscard]] caf::expected<caf::io::doorman_ptr> open_tls_door(caf::actor_system& system,
                                                                const std::string& address,
                                                                std::uint16_t port,
                                                                std::shared_ptr<PeerNodes> nodes);

}  // namespace stagecraft
