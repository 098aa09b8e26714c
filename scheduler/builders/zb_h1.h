/// ZB-H1: 1F1B with split backwards; weight halves wait until they fill a bubble. Memory as 1F1B's
/// first row.
///
///     d0: F0 F1 . . I0 W0 F2 I1 W1 ...
///     d1: . F0 I0 F1 I1 W0 F2 I2 W1 ...         row r's W lag its I by r
///
/// Source: Qi et al., "Zero Bubble Pipeline Parallelism".
#pragma once

#include "stagecraft/scheduler/schedule.h"

namespace stagecraft {

/// Returns the unit-time array, one stage per row. Errors: ScheduleParameter for a count below 1.
[[nodiscard]] Schedule zb_h1(int ranks, int microbatches);

}  // namespace stagecraft
