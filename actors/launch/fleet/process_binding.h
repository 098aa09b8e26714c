/// ProcessBinding is the binding of one crew whose ranks are in the processes of a fleet, or in
/// threads of this process (PL-1), with the network between them.
///
/// The launcher of processes makes it, and its crew's thread uses it.
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
                                                         int ranks,
                                                         LastRank last);

}  // namespace stagecraft
