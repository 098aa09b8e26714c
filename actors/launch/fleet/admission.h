/// Admission is the place where worker processes join a fleet: a port, the actor that greets them
/// there, admits those of this build and watches them from then on, and the file with the port's
/// address.
///
/// The fleet owns it; it is open as long as it lives. Keeps HE-1: a process that joins has said
/// Hello before, and was welcome.
/// WA-1: a worker joins under the name in the certificate of its connection (PeerNodes), whatever
///       it says of itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "stagecraft/actors/launch/port/node_guard.h"
#include "stagecraft/actors/launch/ways/spawn_options.h"
#include "stagecraft/actors/messages/actor_host.h"
#include "stagecraft/actors/messages/process_actors.h"
#include "stagecraft/base/error.h"

namespace stagecraft {

/// AdmissionEvents holds the fleet's reactions to the events of the admission. They are called on
/// threads of the actor system, also while the admission is destroyed and a moment after that; they
/// must not block.
struct AdmissionEvents {
  /// A worker was not welcome.
  std::function<void(const std::string& why)> refused;
  /// `worker`: the name in its certificate. Returns false if the worker may ask again. Errors:
  /// ClusterMember if it has no place.
  std::function<bool(const Join& join, const WorkerHostActor& host, const std::string& worker)>
      joins;
  /// Returns whether another worker has the place that this one asks for.
  std::function<bool(const Join& join, const std::string& worker)> is_taken;
  /// The connection of a worker that has joined has ended, or the worker has.
  std::function<void(const caf::actor_addr& host)> disconnected;
  /// Tensors from the process with this node do not reach the port with this key.
  std::function<void(const caf::node_id& from, const std::string& key, const Error& why)> cut;
};

/// Starts the actor that greets and admits. `nodes`: the processes that are connected.
[[nodiscard]] AdmissionActor spawn_admission(ActorHost& host,
                                             AdmissionEvents events,
                                             std::shared_ptr<const PeerNodes> nodes);

class Admission {
 public:
  /// Opens at `address` of this host. Errors: those of publish().
  Admission(ActorHost& host,
            const SpawnOptions& options,
            const std::string& address,
            AdmissionEvents events);
  ~Admission();
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }

  /// Writes to the meeting place, if there is one, the address where workers that come by
  /// themselves can join.
  /// Errors: those of WholeFile.
  void tell(const std::string& where);

 private:
  ActorHost& host_;
  const std::shared_ptr<PeerNodes> nodes_ = std::make_shared<PeerNodes>();
  const AdmissionActor actor_;
  const std::uint16_t port_;
  const std::string file_;  ///< holds the address; empty: none
};

}  // namespace stagecraft
