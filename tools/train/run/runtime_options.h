/// The options of the runtime for a job: of the trainer, and of the one process of --verify.
#pragma once

#include "stagecraft/actors/executor/setup/trainer_options.h"
#include "stagecraft/actors/reference/reference.h"
#include "stagecraft/tools/train/job/job.h"

namespace stagecraft::tools {

[[nodiscard]] TrainerOptions trainer_options(const TrainJob& job);
[[nodiscard]] ReferenceOptions reference_options(const TrainJob& job);

}  // namespace stagecraft::tools
