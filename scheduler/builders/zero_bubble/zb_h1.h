/// ZB-H1 is 1F1B with split backwards: weight halves wait until they fill a bubble. It needs the
/// memory of 1F1B's first row.
///
///     0F0 0F1  .  0I0 0W0 0F2 0I1 0W1 0F3 0I2 0W2 0I3 0W3
///          1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1F3 1I3 1W2 1W3     row r's W lag its I by r
///
/// Source: Qi et al., "Zero Bubble Pipeline Parallelism".
#pragma once

#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// Returns the unit-time array, one stage per row. Errors: ScheduleParameter for a count below 1.
[[nodiscard]] Schedule zb_h1(int ranks, int microbatches);

}  // namespace stagecraft
