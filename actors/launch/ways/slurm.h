/// slurm is the batch system Slurm: srun starts the processes of a cluster as a step of a job.
#pragma once

#include <memory>

#include "stagecraft/actors/launch/ways/batch_system.h"
#include "stagecraft/actors/launch/ways/spawn_options.h"
#include "stagecraft/actors/launch/ways/worker_way.h"

namespace stagecraft {

extern const BatchSystem kSlurm;

/// Returns the step of this process; nothing if this is no step of Slurm, or if it is the shell or
/// the script of a job. Errors: UsageArgument for variables that make no sense.
[[nodiscard]] std::optional<BatchStep> slurm_step();

/// Returns the way of workers that are the other processes of this step.
[[nodiscard]] std::unique_ptr<const WorkerWay> workers_of_slurm(const SpawnOptions& options);

}  // namespace stagecraft
