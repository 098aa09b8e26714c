/// ZB-H2 has split backwards and twice the warm-up of 1F1B. It has no bubble between a row's first
/// and last task.
///
///     0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3
///          1F0 1I0 1F1 1I1 1F2 1I2 1W0 1F3 1I3 1W1 1W2 1W3     row r's W lag its I by 2r
///
/// The schedule has this property from 2P - 1 microbatches on, and if the update needs no global
/// barrier. Source: Qi et al., "Zero Bubble Pipeline Parallelism".
#pragma once

#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// Returns the unit-time array, one stage per row. Errors: ScheduleParameter for a count below 1.
[[nodiscard]] Schedule zb_h2(int ranks, int microbatches);

}  // namespace stagecraft
