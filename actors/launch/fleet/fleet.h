/// Fleet holds the worker processes of one cluster, with the ports at which they join and at which
/// their tensors arrive. Its way (ways/worker_way.h) starts them, or they come by themselves.
///
/// A launcher and its bindings share it. A place is a position among the processes (place.h). The
/// process in a place may be replaced, which increments the incarnation.
/// FL-1: processes start when they are first required, and all end with the fleet.
/// FL-4: workers start in turns (WorkerWay::turns).
/// Any thread may use it. It has no lock of its own: Places has one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "stagecraft/actors/executor/step/step_values.h"
#include "stagecraft/actors/launch/fleet/fleet_ground.h"
#include "stagecraft/actors/launch/fleet/places.h"
#include "stagecraft/actors/launch/fleet/processor_hold.h"
#include "stagecraft/actors/messages/actor_host.h"
#include "stagecraft/base/clock.h"
#include "stagecraft/base/process/home_process.h"
#include "stagecraft/futures/transport/zmq/data_port.h"

namespace stagecraft {

class Fleet {
 public:
  /// Makes a fleet of real processes. Errors: UsageFile if no worker program is found; those of
  /// real_ground() and FleetGround::open_port().
  explicit Fleet(const SpawnOptions& options,
                 std::shared_ptr<const Clock> clock = Clock::current());
  /// Opens the data port. Errors: those of FleetGround::open_port().
  Fleet(const SpawnOptions& options,
        std::shared_ptr<const Clock> clock,
        std::shared_ptr<const WorkerWay> way,
        std::unique_ptr<FleetGround> ground);
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  [[nodiscard]] ActorHost& host() const { return host_; }
  [[nodiscard]] const std::shared_ptr<DataPort>& port() const { return port_; }
  [[nodiscard]] ProcessorHold& processors() { return processors_; }
  /// Returns what steps leave on the ranks that are threads of this process.
  [[nodiscard]] const std::shared_ptr<StepValues>& step_values() const { return step_values_; }
  [[nodiscard]] NetworkId next_network() { return NetworkId(++networks_); }
  /// Returns the places, with the events of workers and the workers in them.
  [[nodiscard]] Places& places() { return *places_; }

  /// Fills places 0 to places - 1: starts the missing workers, and waits for them to join.
  /// Errors: ClusterMember if one ends before it has joined; ClusterTimeout.
  void require(int places);

  /// Ends the process of a place, starts another one, and waits for it. If it does not come, and
  /// there are spares, it starts on the next host (PlaceHosts), and a line says so.
  /// Errors: as require, of the host that was tried last.
  void replace(int place);

  /// Returns the worker of a place. Errors: ClusterMember if the place is empty, or its process
  /// lost.
  [[nodiscard]] FleetMember member(int place) const;
  /// Returns the current worker of a place; without process and address while there is none.
  [[nodiscard]] WorkerPlace who(int place) const;
  /// Returns "worker process 4711", or "worker process 4711 on node-b".
  [[nodiscard]] std::string name_of(int place) const;

  /// Throws ClusterMember with the cause, and the way to continue. Waits for the cause, at most for
  /// kCauseLimit.
  [[noreturn]] void throw_lost(const PlaceTurn& turn) const;

 private:
  /// The ground of real processes starts them in the fleet's own way.
  Fleet(const SpawnOptions& options,
        const std::shared_ptr<const Clock>& clock,
        const std::shared_ptr<const WorkerWay>& way);

  [[nodiscard]] AdmissionEvents events();
  /// Calls for a worker in an empty place.
  void call(const PlaceTurn& turn);
  void start(const PlaceTurn& turn);
  void start_those_in_turn();
  void wait_for(const std::vector<int>& places);
  [[noreturn]] void throw_missing(const MissingWorkers& missing) const;
  /// Prints the line for people, if workers run elsewhere.
  void tell(const std::string& line) const;

  const HomeProcess home_;
  const SpawnOptions options_;
  const std::shared_ptr<const Clock> clock_;
  const std::shared_ptr<const WorkerWay> way_;
  const PlaceText text_{options_, *way_};
  const std::unique_ptr<FleetGround> ground_;
  ActorHost& host_;
  const std::shared_ptr<Places> places_;
  ProcessorHold processors_;
  const std::shared_ptr<StepValues> step_values_ = std::make_shared<StepValues>();
  const std::shared_ptr<DataPort> port_;
  std::atomic<std::uint64_t> networks_{0};
  std::once_flag opened_;
};

}  // namespace stagecraft
