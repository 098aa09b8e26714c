/// TlsDoor: the listening socket of a control plane, which neither descriptors that run out nor
/// connections that say nothing end or slow down.
///
/// CAF's own listener ends the process at the last free descriptor; with none free it goes round
/// and round instead of waiting. Whoever reaches the port could cause both without a certificate.
/// Used by publish() (control_port.h); connections are TlsSessions.
/// TD-1: no connection takes one of the last kSpareDescriptors: it is closed unheard. They are for
///       what this process does itself.
/// TD-2: a connection that cannot be opened, for whatever reason, ends alone.
/// TD-3: of connections that have not shaken hands there are at most kMostWaiting: the oldest is
///       ended when another one comes. A member shakes hands within moments.
/// TD-4: a port is taken also while connections that have ended there linger, as they do for a
///       minute; not while somebody listens at it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <caf/actor_system.hpp>
#include <caf/expected.hpp>
#include <caf/io/doorman.hpp>

namespace stagecraft {

inline constexpr int kSpareDescriptors = 64;
inline constexpr std::size_t kMostWaiting = 1024;

/// Listens at a port of `address`, any free one for 0; doorman->port() says which.
/// Errors: those of TlsContext.
[[nodiscard]] caf::expected<caf::io::doorman_ptr> open_tls_door(caf::actor_system& system,
                                                                const std::string& address,
                                                                std::uint16_t port);

}  // namespace stagecraft
