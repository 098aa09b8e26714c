/// Hanayo sends microbatches down and up the rows in waves. It is Chimera folded onto one copy of
/// the weights.
///
///     0F0 0F1  .  3F0 3B0 3F1 3B1 0B0  .  0B1     one wave: stages 0 and 3
///          1F0 2F0 1F1 2F1 2B0 1B0 2B1 1B1         stages 1 and 2
///
/// W waves make 2W chunks per row. Source: Liu et al., "Hanayo: Harnessing Wave-like Pipeline
/// Parallelism for Enhanced Large Model Training Efficiency"; the slot rule folds Chimera's.
#pragma once

#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// Returns the unit-time array of `ranks` rows and 2 x ranks x waves stages.
/// Errors: ScheduleParameter unless ranks divide microbatches.
[[nodiscard]] Schedule hanayo(int ranks, int microbatches, int waves);

}  // namespace stagecraft
