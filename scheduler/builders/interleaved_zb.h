/// Interleaved zero bubble is interleaved 1F1B with split backwards; the weight halves fill the
/// bubbles.
///
/// The warm-up of each chunk is that of 1F1B. The weight halves of row r lag its input halves by r.
/// With one chunk this is ZB-H1. Source: Qi et al., "Zero Bubble Pipeline Parallelism", with the
/// loop of Narayanan et al.
#pragma once

#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// Returns the unit-time array of `ranks` rows and ranks x chunks stages.
/// Errors: ScheduleParameter unless microbatches are a multiple of max(1, microbatches / ranks).
[[nodiscard]] Schedule interleaved_zb(int ranks, int microbatches, int chunks);

}  // namespace stagecraft
