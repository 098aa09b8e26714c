/// joining is the way of workers that join by themselves, from anywhere: `stagecraft worker
/// --join`, by hand or by a system that knows nothing of Stagecraft.
#pragma once

#include <memory>

#include "stagecraft/actors/launch/ways/spawn_options.h"
#include "stagecraft/actors/launch/ways/worker_way.h"

namespace stagecraft {

[[nodiscard]] std::unique_ptr<const WorkerWay> workers_that_join(const SpawnOptions& options);

}  // namespace stagecraft
