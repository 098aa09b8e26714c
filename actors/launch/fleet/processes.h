/// ProcessLauncher launches ranks that are processes of this host or of others, or threads of this
/// process (PL-1).
///
/// Worker processes start when a crew first needs them, serve all crews of the cluster, and end
/// with the last of cluster and crews, or with this process.
#pragma once

#include <memory>

#include "stagecraft/actors/launch/launcher.h"
#include "stagecraft/actors/launch/ways/spawn_options.h"

namespace stagecraft {

/// Makes the launcher.
/// Errors: UsageArgument for options that make no sense; those of the credentials; UsageFile if no
/// worker program is found; ClusterMember if no port can be opened. If all must be held to one
/// processor (ProcessorChoice), those of starting the workers of `ranks`.
[[nodiscard]] std::shared_ptr<Launcher> launch_processes(const SpawnOptions& options, int ranks);

}  // namespace stagecraft
