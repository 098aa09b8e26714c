/// worker_process runs a worker process: it joins a cluster, then opens networks and starts ranks
/// on request, until its driver goes.
///
/// `stagecraft worker` and worker_main() run it. One process may have ranks of several crews, and
/// several ranks of one crew.
/// WP-1: it ends when its driver ends in any way: its lifeline closes, a pipe whose other end the
///       driver's process holds, or the connection to the driver is lost. With `outlive` the loss
///       of the connection ends its ranks alone, which leave their copies of states (MR-4), and it
///       joins the next driver at the same address. It ends if its ranks had ended before: then the
///       driver has ended its trainer.
/// WP-2: it ends when it has lost a tensor that was sent to it, or when its data port has failed,
///       usually for lack of memory. Its end is reported by name, whereas a wait for the tensor
///       would hang, and its peers could not tell whose fault that is.
/// WP-3: it reports a peer that does not get its tensors to the driver, which knows whether the
///       peer is alive.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "stagecraft/actors/launch/port/control_port.h"
#include "stagecraft/actors/remote/host/actor_type.h"

namespace stagecraft {

/// The folder's name if the driver sends the credentials on the lifeline, before anything else.
inline constexpr const char* kCredentialsFromLifeline = "-";

struct WorkerProcessOptions {
  std::string host;  ///< address of the listening driver
  std::uint16_t port = 0;
  /// A folder with this member's files, or kCredentialsFromLifeline.
  std::string credentials;
  std::int32_t place = -1;        ///< -1: any free one
  std::int64_t incarnation = -1;  ///< -1: any
  int lifeline = -1;              ///< a descriptor to read from; -1: none
  std::string bind;  ///< interface or address for tensors; empty: the one toward the driver
  Heartbeat heartbeat;
  std::chrono::milliseconds patience{std::chrono::seconds(30)};  ///< longest time to join
  /// Longest wait for another driver after the loss of one. 0: it ends with its driver.
  std::chrono::milliseconds outlive{0};
};

/// The exit status of a worker that has lost the connection to its driver but not its lifeline. The
/// driver may still run, and learns of the loss by it.
inline constexpr int kDriverLost = 4;

/// The exit status of a worker whose driver may go on with another worker in its place: the driver
/// has ended this one, or it ended itself (WP-2). Whoever starts workers starts that one.
inline constexpr int kToBeReplaced = 3;

/// Returns the exit status of this process, once it serves its driver no more: 0 if the driver has
/// gone, and no other has come in time; kToBeReplaced. `types`: of the remote actors that may run
/// here.
/// Errors: those of the credentials; ClusterMember, ClusterTimeout if it cannot join.
[[nodiscard]] int run_worker_process(
    const WorkerProcessOptions& options,
    std::shared_ptr<const ActorTypes> types = std::make_shared<ActorTypes>());

}  // namespace stagecraft
