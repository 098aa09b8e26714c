/// checked_options checks a trainer's options against what they are used with, before anything is
/// made.
#pragma once

#include "stagecraft/actors/executor/optimizer/optimizer.h"
#include "stagecraft/actors/executor/setup/trainer_options.h"
#include "stagecraft/actors/trainer/execution.h"

namespace stagecraft {

/// Returns the options after checking them. `available`: ranks of the cluster. Errors: those of a
/// Trainer's constructor that do not concern the schedule.
[[nodiscard]] TrainerOptions checked_options(TrainerOptions options,
                                             const Optimizer& optimizer,
                                             const Execution& execution,
                                             int available);

}  // namespace stagecraft
