/// The control plane between processes: an actor host with a port of its own, over mutual TLS.
///
/// Used by the launcher of processes and by worker processes. An end reads no message from a
/// connection before both ends have shown a certificate of the cluster.
/// CP-1: the files of the credentials were checked before (load_credentials). CAF 0.17 ends the
///       process at the first connection if it cannot read one, and without any file it would
///       accept every peer.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "stagecraft/actors/launch/launcher.h"
#include "stagecraft/actors/messages/caf_types.h"
#include "stagecraft/actors/messages/process_messages.h"
#include "stagecraft/actors/security/credentials.h"

namespace stagecraft {

/// The answer to StartRank. This is the only message that holds handles of actors: it brings them
/// from one process to the other.
struct RankStarted {
  Worker worker;
  ErrorChain error;
};

template <class V>
decltype(auto) visit_fields(RankStarted& m, V&& v) {
  return v(m.worker.plan_thread, m.worker.agent, m.error);
}

/// In the driver's process: admits worker processes.
using AdmissionActor = caf::typed_actor<caf::replies_to<Hello>::with<Welcome>,
                                        caf::replies_to<Join>::with<Joined>,
                                        caf::reacts_to<PeerCut>>;

/// In a worker process: opens networks and starts ranks.
using WorkerHostActor = caf::typed_actor<caf::replies_to<OpenNetwork>::with<NetworkOpened>,
                                         caf::replies_to<StartRank>::with<RankStarted>,
                                         caf::reacts_to<CloseNetwork>,
                                         caf::replies_to<AreYouThere>::with<Here>>;

/// An end that sends nothing for `silence` is given up; an idle end sends a sign of life every
/// `interval`. Both ends of a connection need the same values.
struct Heartbeat {
  std::chrono::milliseconds interval{1000};
  std::chrono::milliseconds silence{5000};
};

/// Errors: UsageArgument for intervals that make no sense.
void check_heartbeat(const Heartbeat& heartbeat);

/// Returns a host whose actors other processes of the cluster can reach. Never destroyed (AH-1).
[[nodiscard]] ActorHost& open_control_plane(const Credentials& credentials,
                                            const Heartbeat& heartbeat);

/// Publishes `actor` at a port of `address`; 0: any free one. Returns the port.
/// Errors: ClusterMember if the address is not one of this host's, or if no port can be opened
///         there.
[[nodiscard]] std::uint16_t publish(ActorHost& host,
                                    const AdmissionActor& actor,
                                    const std::string& address,
                                    std::uint16_t port = 0);
void unpublish(ActorHost& host, const AdmissionActor& actor, std::uint16_t port);

/// Finds the admission at `address`. Waits for it until the deadline.
/// Errors: ClusterMember if another program answers or if our certificate is refused;
///         ClusterTimeout if there is no answer.
[[nodiscard]] AdmissionActor find_admission(ActorHost& host,
                                            const std::string& address,
                                            std::uint16_t port,
                                            std::chrono::milliseconds patience);

/// Returns what two processes of a cluster must have in common: versions of Stagecraft, LibTorch,
/// compiler and the layout of all messages. "stagecraft 0.1.0, LibTorch 2.11.0, ..., messages
/// 1f03a9c2".
[[nodiscard]] std::string build_fingerprint();

/// Returns why the two processes cannot work together, as a clause; empty if both have the same
/// build.
[[nodiscard]] std::string refusal_of(const Hello& worker, const Welcome& driver);

/// Returns the refusal in `driver`, with the build of each. Both ends use these words.
[[nodiscard]] std::string refusal_text(const Hello& worker, const Welcome& driver);

/// Raises this process's soft limit of open files to its hard limit, so that a peer that only opens
/// connections does not use them up soon.
void raise_file_limit();

/// Errors: UsageArgument if this process may not open the files that this number of workers needs.
void require_files(int workers);

}  // namespace stagecraft
