/// FleetGround is what a fleet stands on: the control plane on which its workers join, the data
/// plane, and the system that runs their processes. real_ground() is that of real processes; a
/// simulation has another.
///
/// The fleet owns it. Any thread may use it once the port is open.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "stagecraft/actors/launch/fleet/admission.h"
#include "stagecraft/actors/launch/fleet/cut_links.h"
#include "stagecraft/actors/launch/fleet/places.h"
#include "stagecraft/actors/launch/ways/spawn_options.h"
#include "stagecraft/actors/launch/ways/worker_child.h"
#include "stagecraft/actors/launch/ways/worker_way.h"
#include "stagecraft/actors/launch/worker/worker_process.h"
#include "stagecraft/actors/messages/actor_host.h"
#include "stagecraft/base/clock.h"
#include "stagecraft/futures/transport/zmq/data_port.h"

namespace stagecraft {

class FleetGround {
 public:
  FleetGround(const FleetGround&) = delete;
  FleetGround(FleetGround&&) = delete;
  FleetGround& operator=(const FleetGround&) = delete;
  FleetGround& operator=(FleetGround&&) = delete;
  virtual ~FleetGround() = default;

  [[nodiscard]] virtual ActorHost& host() const = 0;
  /// Returns the record of the times when this process stood still.
  [[nodiscard]] virtual Places::StoodStill standstills() const = 0;

  /// Opens the port for tensors, which reports to `cuts`. Called once. Errors: TransportRefused if
  /// no port can be opened.
  [[nodiscard]] virtual std::shared_ptr<DataPort> open_port(const CutLinks& cuts) = 0;
  /// Lets workers join from now on. Called once. Errors: those of publish().
  virtual void admit(AdmissionEvents events) = 0;
  /// Lets no worker join any more.
  virtual void close() = 0;
  /// Returns the address at which workers join. Requires: admit().
  [[nodiscard]] virtual std::string address() const = 0;
  /// Tells workers that come by themselves that address. Errors: those of WholeFile.
  virtual void tell_address() = 0;

  /// Prepares the credentials of a place for a new worker. Errors: those of FleetCredentials.
  virtual void renew(const PlaceTurn& turn) = 0;
  /// Returns how the worker of a place joins. Requires: admit().
  [[nodiscard]] virtual WorkerProcessOptions way_to_join(const PlaceTurn& turn) const = 0;
  /// Starts the worker of a place. `on_let_in`: called when its host has let it in (LetIn).
  /// `on_end`: called once when the process has ended, with how. Both are called on other threads.
  /// Requires: admit(), and a way that starts workers. Errors: those of WorkerWay::program and
  /// ChildProcess.
  [[nodiscard]] virtual std::unique_ptr<WorkerChild> start(
      const PlaceTurn& turn,
      std::function<void()> on_let_in,
      std::function<void(const std::string& how)> on_end) = 0;

 protected:
  FleetGround() = default;
};

/// Opens the control plane of real processes, which start in this way. Errors: those of the
/// credentials and of open_control_plane().
[[nodiscard]] std::unique_ptr<FleetGround> real_ground(const SpawnOptions& options,
                                                       std::shared_ptr<const Clock> clock,
                                                       std::shared_ptr<const WorkerWay> way);

}  // namespace stagecraft
