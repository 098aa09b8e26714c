/// here is the way of workers on this host: the fleet starts them as its children.
#pragma once

#include <memory>

#include "stagecraft/actors/launch/ways/spawn_options.h"
#include "stagecraft/actors/launch/ways/worker_way.h"

namespace stagecraft {

/// Returns the way. Errors: UsageFile if no worker program is found.
[[nodiscard]] std::unique_ptr<const WorkerWay> workers_here(const SpawnOptions& options);

}  // namespace stagecraft
