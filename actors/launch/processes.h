/// ProcessLauncher: ranks that are processes of this host, or threads of this process beside them.
///
/// Worker processes are started when a crew first needs them, serve all crews of the cluster, and
/// end with the last of cluster and crews, or with this process.
/// PL-1: a rank has the same place for every crew: the first `local_ranks` are threads of this
///       process, of the rest every `ranks_per_process` share a process, in ascending order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stagecraft/actors/cluster.h"
#include "stagecraft/actors/launch/launcher.h"

namespace stagecraft {

/// Errors: UsageArgument for options that make no sense; those of the credentials; UsageFile where
///         no worker program is found; ClusterMember when no port can be opened. Those of starting
///         the workers of `ranks` where all are to be held to one processor (ProcessorChoice).
[[nodiscard]] std::shared_ptr<Launcher> launch_processes(const SpawnOptions& options, int ranks);

}  // namespace stagecraft
