/// ProcessBinding: the ranks of one crew in the processes of a fleet, and in threads of this
/// process (PL-1), with the network between them.
///
/// Made by the launcher of processes, used on its crew's thread.
#pragma once

#include <memory>

#include "stagecraft/actors/launch/fleet/fleet.h"
#include "stagecraft/actors/launch/launcher.h"
#include "stagecraft/actors/launch/ways/spawn_options.h"

namespace stagecraft {

/// Starts the missing workers of these ranks, and connects them. Errors: those of Fleet::require;
/// ClusterMember if one of them is lost.
[[nodiscard]] std::unique_ptr<Binding> bind_to_processes(std::shared_ptr<Fleet> fleet,
                                                         const SpawnOptions& options,
                                                         int ranks);

}  // namespace stagecraft
