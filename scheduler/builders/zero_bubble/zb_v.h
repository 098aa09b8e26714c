/// ZB-V has split backwards and two chunks per row in a V, so the first and the last stage share a
/// row.
///
///     stage 0 1 2 3
///           4 5 6 7 read backwards: row r runs stages r and 2P - 1 - r
///
/// It has zero bubbles with the memory of 1F1B if F = I = W and there are at least 2P - 1
/// microbatches; with fewer it stays valid. Source: Qi et al., "Pipeline Parallelism with
/// Controllable Memory".
#pragma once

#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// Returns the unit-time array of `ranks` rows and 2 x ranks stages. Errors: ScheduleParameter for
/// a count below 1.
[[nodiscard]] Schedule zb_v(int ranks, int microbatches);

}  // namespace stagecraft
