/// ZB-H2: split backwards and twice the warm-up of 1F1B: no bubble between a row's first and last
/// task.
///
///     d0: F0 F1 F2 . I0 W0 F3 I1 W1 ...
///     d1: . F0 I0 F1 I1 F2 I2 W0 F3 ...         row r's W lag its I by 2r
///
/// The claim holds from 2P - 1 microbatches on and needs an update without a global barrier.
/// Source: Qi et al., "Zero Bubble Pipeline Parallelism".
#pragma once

#include "stagecraft/scheduler/schedule.h"

namespace stagecraft {

/// Returns the unit-time array, one stage per row. Errors: ScheduleParameter for a count below 1.
[[nodiscard]] Schedule zb_h2(int ranks, int microbatches);

}  // namespace stagecraft
