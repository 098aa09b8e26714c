/// job_trainer_options returns the options of the trainer of a job. `progress`, `console`: for
/// --step-by-step; they must outlive the trainer.
#pragma once

#include "stagecraft/actors/executor/setup/trainer_options.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/train/job/job.h"
#include "stagecraft/tools/train/report/progress.h"

namespace stagecraft::tools {

[[nodiscard]] TrainerOptions trainer_options(const TrainJob& job,
                                             Progress& progress,
                                             Console& console);

}  // namespace stagecraft::tools
