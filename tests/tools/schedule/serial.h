/// Serial: one microbatch goes through all stages and back before the next one starts.
///
///     0F0  .   .  0B0 0F1  .   .  0B1
///      .  1F0 1B0  .   .  1F1 1B1  .
#pragma once

#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// Returns the unit-time array, one stage per row.
/// Errors: ScheduleParameter for counts below 1.
[[nodiscard]] Schedule serial(int ranks, int microbatches);

}  // namespace stagecraft
