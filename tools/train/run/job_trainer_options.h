/// job_trainer_options returns the options of the trainer of a job. `console`: for --step-by-step;
/// it must outlive the trainer.
#pragma once

#include "stagecraft/actors/executor/setup/trainer_options.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/train/job/job.h"

namespace stagecraft::tools {

[[nodiscard]] TrainerOptions trainer_options(const TrainJob& job, Console& console);

}  // namespace stagecraft::tools
