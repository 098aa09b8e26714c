/// Launcher: starts the workers of a crew, wherever they are to run, and the network between them.
///
/// A cluster has one and its trainers' crews share it; every crew gets workers and a network of its
/// own. May be used from any thread.
#pragma once

#include <memory>

#include "stagecraft/actors/caf_types.h"
#include "stagecraft/actors/executor/stage_executor.h"
#include "stagecraft/futures/transport/network.h"

namespace stagecraft {

/// One rank as its crew and its driver see it. Both actors end when they are told to quit; the
/// agent closes the rank's transport when it is asked to (EndWorker).
struct Worker {
  PlanActor plan_thread;
  AgentActor agent;
};

class Launcher {
 public:
  Launcher(const Launcher&) = delete;
  Launcher(Launcher&&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  Launcher& operator=(Launcher&&) = delete;
  virtual ~Launcher() = default;

  /// A network of ranks 0 to ranks - 1 and the driver.
  [[nodiscard]] virtual std::unique_ptr<const Network> make_network(int ranks) const = 0;

  /// Starts the worker of `setup.rank` at its end of `network`, which this launcher made.
  /// Errors: DeviceOutOfMemory when there are no means to start it.
  [[nodiscard]] virtual Worker launch(const Network& network, RankSetup setup) const = 0;

 protected:
  Launcher() = default;
};

}  // namespace stagecraft
