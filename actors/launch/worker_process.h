/// A worker process: joins a cluster, then opens networks and starts ranks as it is told, until its
/// driver goes.
///
/// What `stagecraft worker` and worker_main() run. One process may have ranks of several crews, and
/// several of one.
/// WP-1: it ends when its driver ends, however that happens: its lifeline, a pipe that the driver's
///       process holds the other end of, closes; or the connection to the driver is lost.
/// WP-2: it ends when it has lost a tensor that was sent to it, for lack of memory as a rule: its
///       loss is told by name, where waiting for the tensor would be a hang.
/// WP-3: a peer that does not get its tensors is told to the driver, who knows whether it is alive.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "stagecraft/actors/launch/control_port.h"

namespace stagecraft {

/// The driver hands them over on the lifeline, before anything else.
inline constexpr const char* kCredentialsFromLifeline = "-";

struct WorkerProcessOptions {
  std::string host;  ///< where the driver listens
  std::uint16_t port = 0;
  /// A folder with this member's files, or kCredentialsFromLifeline.
  std::string credentials;
  std::int32_t place = -1;        ///< -1: any that is free
  std::int64_t incarnation = -1;  ///< -1: whatever it is
  int lifeline = -1;              ///< a descriptor to read from; -1: none
  std::string bind;  ///< an interface or address of this host at which tensors arrive; empty: the
                     ///< one from which the driver is reached
  Heartbeat heartbeat;
  std::chrono::milliseconds patience{std::chrono::seconds(30)};  ///< longest time to join
};

/// The exit status of a worker whose connection to the driver is lost while its lifeline is not:
/// the driver may be there, and is told so.
inline constexpr int kDriverLost = 4;

/// Returns when the driver has gone, why.
/// Errors: those of the credentials; ClusterMember, ClusterTimeout when it cannot join.
[[nodiscard]] std::string run_worker_process(const WorkerProcessOptions& options);

}  // namespace stagecraft
