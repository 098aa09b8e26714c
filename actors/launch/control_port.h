/// The control plane between processes: an actor host with a port of its own, over mutual TLS.
///
/// Used by the launcher of processes and by worker processes. No message is read from a connection
/// before both ends have shown a certificate of the cluster.
/// CP-1: the files of the credentials were checked before (load_credentials): CAF 0.17 ends the
///       process at the first connection when it cannot read one, and without any of them it would
///       talk to everybody.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "stagecraft/actors/caf_types.h"
#include "stagecraft/actors/launch/launcher.h"
#include "stagecraft/actors/launch/process_messages.h"
#include "stagecraft/actors/security/credentials.h"

namespace stagecraft {

/// The answer to StartRank, and the one message that has handles of actors: it is how they get from
/// one process to the other.
struct RankStarted {
  Worker worker;
  ErrorChain error;
};

template <class V>
decltype(auto) visit_fields(RankStarted& m, V&& v) {
  return v(m.worker.plan_thread, m.worker.agent, m.error);
}

/// In the driver's process: takes worker processes in.
using AdmissionActor = caf::typed_actor<caf::replies_to<Hello>::with<Welcome>,
                                        caf::replies_to<Join>::with<Joined>,
                                        caf::reacts_to<PeerCut>>;

/// In a worker process: opens networks and starts ranks.
using WorkerHostActor = caf::typed_actor<caf::replies_to<OpenNetwork>::with<NetworkOpened>,
                                         caf::replies_to<StartRank>::with<RankStarted>,
                                         caf::reacts_to<CloseNetwork>,
                                         caf::replies_to<AreYouThere>::with<Here>>;

/// An end that says nothing for `silence` is given up; one that is idle says that it is there every
/// `interval`. Both ends of a connection need the same.
struct Heartbeat {
  std::chrono::milliseconds interval{1000};
  std::chrono::milliseconds silence{5000};
};

/// Errors: UsageArgument for intervals that make no sense.
void check_heartbeat(const Heartbeat& heartbeat);

/// A host whose actors can be reached from other processes of the cluster. Never destroyed (AH-1).
[[nodiscard]] ActorHost& open_control_plane(const Credentials& credentials,
                                            const Heartbeat& heartbeat);

/// Lets `actor` be found at a port of `address`, any free one. Returns the port.
/// Errors: ClusterMember when the address is none of this host's, or no port can be opened there.
[[nodiscard]] std::uint16_t publish(ActorHost& host,
                                    const AdmissionActor& actor,
                                    const std::string& address,
                                    std::uint16_t port = 0);
void unpublish(ActorHost& host, const AdmissionActor& actor, std::uint16_t port);

/// Finds the admission at `address`, waiting for it until the deadline.
/// Errors: ClusterMember when somebody else answers or refuses our certificate; ClusterTimeout when
///         nobody does.
[[nodiscard]] AdmissionActor find_admission(ActorHost& host,
                                            const std::string& address,
                                            std::uint16_t port,
                                            std::chrono::milliseconds patience);

/// What two processes of a cluster must have in common: versions of Stagecraft, LibTorch, compiler
/// and the layout of all messages. "stagecraft 0.1.0, LibTorch 2.11.0, ..., messages 1f03a9c2".
[[nodiscard]] std::string build_fingerprint();

/// Why the two that greet each other do not go on, as a clause; empty where both are of one build.
[[nodiscard]] std::string refusal_of(const Hello& worker, const Welcome& driver);

/// The refusal in `driver`, with what each of them is. Both ends say it in these words.
[[nodiscard]] std::string refusal_text(const Hello& worker, const Welcome& driver);

/// Raises this process's soft limit of open files to its hard one, so that nobody who only opens
/// connections uses them up soon.
void raise_file_limit();

/// Errors: UsageArgument where this process may not open the files that so many workers need.
void require_files(int workers);

}  // namespace stagecraft
