/// DualPipeV is DualPipe cut in half and folded: one copy of the weights, two chunks per row in a
/// V.
///
/// Row r runs stages r and 2P - 1 - r; the second half of the V takes the place of DualPipe's
/// second replica. Source: the published DualPipe code.
#pragma once

#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// Returns the unit-time array of `ranks` rows and 2 x ranks stages.
/// Errors: ScheduleParameter unless microbatches >= 2 x ranks.
[[nodiscard]] Schedule dualpipev(int ranks, int microbatches);

}  // namespace stagecraft
