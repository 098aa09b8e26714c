/// control_port opens the control plane between processes: an actor host with a port of its own,
/// over mutual TLS.
///
/// The launcher of processes and worker processes use it. An end reads no message from a connection
/// before both ends have shown a certificate of the cluster: the listening end the driver's, the
/// calling end a worker's (AU-1).
/// CP-1: the files of the credentials were checked before (load_credentials). CAF 0.17 ends the
///       process at the first connection if it cannot read one, and without any file it would
///       accept every peer.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "stagecraft/actors/launch/port/node_guard.h"
#include "stagecraft/actors/messages/actor_host.h"
#include "stagecraft/actors/messages/process_actors.h"
#include "stagecraft/actors/security/credentials.h"

namespace stagecraft {

/// Heartbeat says when an end is given up: if it sends nothing for `silence`. An idle end sends a
/// sign of life every `interval`. Both ends of a connection need the same values.
struct Heartbeat {
  std::chrono::milliseconds interval{1000};
  std::chrono::milliseconds silence{5000};
};

/// Checks the intervals. Errors: UsageArgument for intervals that make no sense.
void check_heartbeat(const Heartbeat& heartbeat);

/// Returns a host whose actors other processes of the cluster can reach. Never destroyed (AH-1).
[[nodiscard]] ActorHost& open_control_plane(const Credentials& credentials,
                                            const Heartbeat& heartbeat);

/// Publishes `actor` at a port of `address`; 0: any free one. Returns the port. `nodes` gets the
/// workers that connect. Requires: the driver's credentials.
/// Errors: ClusterMember if the address is not one of this host's, or if no port can be opened
///         there.
[[nodiscard]] std::uint16_t publish(ActorHost& host,
                                    const AdmissionActor& actor,
                                    const std::shared_ptr<PeerNodes>& nodes,
                                    const std::string& address,
                                    std::uint16_t port = 0);
void unpublish(ActorHost& host, const AdmissionActor& actor, std::uint16_t port);

/// Finds the admission at `address`. Waits for it until the deadline.
/// Errors: ClusterMember if another program answers, or if either certificate is refused;
///         ClusterTimeout if there is no answer.
[[nodiscard]] AdmissionActor find_admission(ActorHost& host,
                                            const std::string& address,
                                            std::uint16_t port,
                                            std::chrono::milliseconds patience);

}  // namespace stagecraft
