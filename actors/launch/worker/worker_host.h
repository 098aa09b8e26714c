/// worker_host makes the actor by which a worker process joins a cluster and serves it: it greets
/// the driver, asks for a place until it has one, then opens networks and starts ranks on request.
///
/// run_worker_process uses it. Nothing here blocks.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "stagecraft/actors/executor/step/step_values.h"
#include "stagecraft/actors/messages/actor_host.h"
#include "stagecraft/actors/messages/process_actors.h"
#include "stagecraft/actors/remote/host/actor_type.h"
#include "stagecraft/futures/future.h"
#include "stagecraft/futures/transport/transport.h"
#include "stagecraft/futures/transport/zmq/data_port.h"

namespace stagecraft {

/// The end of a worker process whose connection to the driver has ended (WP-1).
inline constexpr const char* kConnectionLost = "the connection to the driver is lost";
/// The end of one whose driver has ended it.
inline constexpr const char* kReplaced = "the driver continues with another worker in its place";

/// ServedProcess holds what the actor serves: a worker process.
struct ServedProcess {
  ActorHost& host;
  std::shared_ptr<DataPort> port;
  std::shared_ptr<const ActorTypes> types;
  std::shared_ptr<StepValues> values;
  /// Starts the worker of a rank at its end of a network.
  std::function<Worker(Rank rank, std::shared_ptr<Transport> end)> start_rank;
  Promise<std::string> ended;  ///< with the reason; kConnectionLost or kReplaced
  /// Called when the process is told that another worker has its place.
  std::function<void()> taken = [] {};
};

/// Starts the actor. The result completes once the driver has admitted the process. Its errors are
/// ClusterMember if the driver has another build, refuses it or ends; ClusterTimeout with the text
/// `late` if it does not admit the process by the deadline, a time of the current clock. `join`:
/// what the process says of itself.
[[nodiscard]] Future<std::monostate> join_cluster(const std::shared_ptr<ServedProcess>& process,
                                                  const AdmissionActor& admission,
                                                  Join join,
                                                  Deadline deadline,
                                                  std::string late);

/// Reports to the driver that tensors do not reach the process with this key (WP-3).
void tell_cut(ActorHost& host,
              const AdmissionActor& admission,
              const std::string& key,
              const Error& why);

}  // namespace stagecraft
