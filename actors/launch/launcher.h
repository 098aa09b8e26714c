/// Launcher starts the workers of crews, on any hosts. Binding holds the workers of one crew, rank
/// by rank, and the network between them.
///
/// A cluster has one launcher, which its trainers' crews share. Every crew has its own binding,
/// which may outlive the cluster. A plan names ranks; only the binding knows their workers.
/// BN-1: another worker may replace a worker (Launcher::replace). The binding continues with the
///       old one until launch() is called again for the rank.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stagecraft/actors/executor/setup/rank_setup.h"
#include "stagecraft/actors/executor/setup/rank_shape.h"
#include "stagecraft/actors/launch/worker_place.h"
#include "stagecraft/actors/messages/actor_host.h"
#include "stagecraft/actors/remote/host/actor_type.h"
#include "stagecraft/futures/future.h"
#include "stagecraft/futures/transport/transport.h"
#include "stagecraft/futures/transport/zmq/data_port.h"

namespace stagecraft {

/// LastRank says where the last rank of a crew has its place.
enum class LastRank {
  LikeOthers,
  Here,  ///< it runs the driver's code, on a thread of this process
};

class Binding {
 public:
  Binding(const Binding&) = delete;
  Binding(Binding&&) = delete;
  Binding& operator=(const Binding&) = delete;
  Binding& operator=(Binding&&) = delete;
  virtual ~Binding() = default;

  /// Returns the driver's end of the network.
  [[nodiscard]] virtual std::shared_ptr<Transport> driver_end() const = 0;

  /// Starts a worker for `setup.rank()` at its end of the network, in the rank's current place. Its
  /// setup has arrived, or is on its way, when LoadPlan asks for it.
  /// Errors: DeviceOutOfMemory if resources for it are missing; those of a worker process that does
  /// not come (ClusterMember, ClusterTimeout); UsageArgument for a setup that cannot travel.
  [[nodiscard]] virtual Worker launch(RankSetup setup) = 0;

  /// Hands the rank's worker its stages for another shape, for the LoadShape of this request: they
  /// have arrived, or are on their way, when the worker asks for them.
  /// Errors: UsageArgument for a shape that cannot travel; the transport's.
  virtual void hand_over(RankShape shape, PlanId plan, Submission request) = 0;

  /// Starts the rank's side of remote actors, in the rank's current place, at its end of the
  /// network. A binding serves either this or launch(). `types`: for a rank of this process; a
  /// worker program has its own. Errors: those of launch() but of setups.
  virtual void launch_actors(Rank rank,
                             Epoch generation,
                             std::shared_ptr<const ActorTypes> types) = 0;

  /// Returns whether a new worker has taken the rank's place since it was launched.
  [[nodiscard]] virtual bool was_replaced(Rank rank) const = 0;

  /// Completes when the worker that was launched last for the rank has ended or fallen silent,
  /// within kCauseLimit, with the cause: "process 4711 was killed by signal 9 (Killed)". Completes
  /// with "" if nobody knows it, and never if the worker's process continues without it.
  /// Requires: the rank was launched.
  [[nodiscard]] virtual Future<std::string> cause_of_end(Rank rank) const = 0;

 protected:
  Binding() = default;
};

/// Any thread may use it.
class Launcher {
 public:
  Launcher(const Launcher&) = delete;
  Launcher(Launcher&&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  Launcher& operator=(Launcher&&) = delete;
  virtual ~Launcher() = default;

  /// Returns the host of a crew's own actors, from which they can talk to its workers.
  [[nodiscard]] virtual ActorHost& host() const = 0;

  /// Judges the setups of all ranks before anything is started for them.
  /// Errors: UsageArgument, naming rank, stage and part, if a part exists in this process alone and
  ///         the rank's place is in another.
  virtual void require_fit(const std::vector<RankSetup>& setups, LastRank last) const = 0;

  /// Returns an id for a crew's plan. Two crews of different processes may share a worker, so it is
  /// random, not counted.
  [[nodiscard]] virtual PlanId new_plan_id();

  /// Makes places for ranks 0 to ranks - 1. Errors: those of Binding::launch.
  [[nodiscard]] virtual std::unique_ptr<Binding> bind(int ranks, LastRank last) = 0;

  /// Returns the worker in the rank's place.
  [[nodiscard]] virtual WorkerPlace place(Rank rank) const = 0;

  /// Returns the traffic of this process's data port, tensors of all crews; nothing if ranks are
  /// threads.
  [[nodiscard]] virtual PortCounts traffic() const = 0;

  /// Ends the process in the rank's place and starts a new worker there, for the next launch().
  /// Errors: UsageArgument for a rank that cannot be replaced; those of Binding::launch.
  virtual void replace(Rank rank) = 0;

 protected:
  Launcher() = default;
};

}  // namespace stagecraft
