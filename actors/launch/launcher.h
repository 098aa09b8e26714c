/// Launcher: starts the workers of crews, wherever they are to run. Binding: the workers of one
/// crew, rank by rank, and the network between them.
///
/// A cluster has one launcher and its trainers' crews share it; every crew has a binding of its
/// own, which may outlive the cluster. A plan names ranks; what stands behind a rank is the
/// binding's alone.
/// BN-1: a worker may be replaced by another in its place (Launcher::replace). The binding goes on
///       with the old one until launch() is called again for the rank.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stagecraft/actors/caf_types.h"
#include "stagecraft/actors/cluster.h"
#include "stagecraft/actors/executor/rank_setup.h"
#include "stagecraft/actors/executor/rank_variant.h"
#include "stagecraft/futures/transport/data_port.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

/// One rank as its crew and its driver see it. Both actors end when they are told to quit; the
/// agent closes the rank's transport when it is asked to (EndWorker).
struct Worker {
  PlanActor plan_thread;
  AgentActor agent;
};

class Binding {
 public:
  Binding(const Binding&) = delete;
  Binding(Binding&&) = delete;
  Binding& operator=(const Binding&) = delete;
  Binding& operator=(Binding&&) = delete;
  virtual ~Binding() = default;

  /// The driver's end of the network.
  [[nodiscard]] virtual std::shared_ptr<Transport> driver_end() const = 0;

  /// Starts a worker for `setup.rank` at its end of the network, in the place that is the rank's
  /// now. Its setup is there, or on its way, when LoadPlan asks for it.
  /// Errors: DeviceOutOfMemory when there are no means to start it; those of a worker process that
  ///         cannot be had (ClusterMember, ClusterTimeout); UsageArgument for a setup that cannot
  ///         travel.
  [[nodiscard]] virtual Worker launch(RankSetup setup) = 0;

  /// Hands the rank's worker its stages for another shape, for the LoadVariant of this request:
  /// they are there, or on their way, when it asks for them.
  /// Errors: UsageArgument for what cannot travel; the transport's.
  virtual void hand_over(RankVariant variant, PlanId plan, Submission request) = 0;

  /// Whether another worker stands in the rank's place than the one that was launched for it.
  [[nodiscard]] virtual bool was_replaced(Rank rank) const = 0;

  /// What is known of why the rank's worker has ended or fallen silent: "process 4711 was killed by
  /// signal 9 (Killed)". Empty: nothing. May be called from any thread; waits for at most a moment.
  [[nodiscard]] virtual std::string cause_of_end(Rank rank) const = 0;

 protected:
  Binding() = default;
};

/// May be used from any thread.
class Launcher {
 public:
  Launcher(const Launcher&) = delete;
  Launcher(Launcher&&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  Launcher& operator=(Launcher&&) = delete;
  virtual ~Launcher() = default;

  /// Where a crew's own actors live, so that they can talk to its workers.
  [[nodiscard]] virtual ActorHost& host() const = 0;

  /// Judges what ranks are to be told before anything is started for them.
  /// Errors: UsageArgument, naming rank, stage and thing, where something of it exists in this
  ///         process alone and the rank's place is in another.
  virtual void require_fit(const std::vector<RankSetup>& setups) const = 0;

  /// Places for ranks 0 to ranks - 1. Errors: as Binding::launch.
  [[nodiscard]] virtual std::unique_ptr<Binding> bind(int ranks) = 0;

  /// Who stands in the rank's place.
  [[nodiscard]] virtual WorkerPlace place(Rank rank) const = 0;

  /// What has gone through this process's data port, tensors of all crews; nothing where ranks are
  /// threads.
  [[nodiscard]] virtual PortCounts traffic() const = 0;

  /// Ends what stands in the rank's place and puts a new worker there, for whoever launches next.
  /// Errors: UsageArgument where it cannot be; as Binding::launch.
  virtual void replace(Rank rank) = 0;

 protected:
  Launcher() = default;
};

}  // namespace stagecraft
