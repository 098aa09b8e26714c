/// Admission: the place where worker processes join a fleet: a port, the actor that greets them
/// there, admits those of this build and watches them from then on, and the file with the port's
/// address.
///
/// Owned by the fleet, which it does not keep alive. Open as long as it lives. Keeps HE-1: a
/// process that joins has said Hello before, and was welcome.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/actors/launch/port/control_port.h"

namespace stagecraft {

class Fleet;

class Admission {
 public:
  /// Opens at `address` of this host. Errors: those of publish().
  Admission(ActorHost& host,
            const SpawnOptions& options,
            const std::string& address,
            std::weak_ptr<Fleet> fleet);
  ~Admission();
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }

  /// Writes to the meeting place, if there is one, where workers that come by themselves can join.
  /// Errors: those of WholeFile.
  void tell(const std::string& where);

 private:
  ActorHost& host_;
  const AdmissionActor actor_;
  const std::uint16_t port_;
  const std::string file_;  ///< holds the address; empty: none
};

}  // namespace stagecraft
