/// Admission: where worker processes join a fleet: a port, the actor there that greets them, takes
/// in those of this build and watches them from then on, and the file that says where it is.
///
/// Owned by the fleet, which it does not keep alive. Open as long as it lives. Keeps HE-1: who
/// joins has said Hello before, and was welcome.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "stagecraft/actors/cluster.h"
#include "stagecraft/actors/launch/control_port.h"

namespace stagecraft {

class Fleet;

class Admission {
 public:
  /// At `address` of this host. Errors: those of publish().
  Admission(ActorHost& host,
            const SpawnOptions& options,
            const std::string& address,
            std::weak_ptr<Fleet> fleet);
  ~Admission();
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }

  /// Tells those that come by themselves where they can join, in the meeting place, if there is
  /// one. Errors: those of WholeFile.
  void tell(const std::string& where);

 private:
  ActorHost& host_;
  const AdmissionActor actor_;
  const std::uint16_t port_;
  const std::string file_;  ///< which says where; empty: none
};

}  // namespace stagecraft
