/// The eight phases that DualPipe and DualPipeV share: one row serving two streams of microbatches.
///
/// "near" is the stream whose first stages sit on this row's half, "far" the one that arrives from
/// the other end. Forwards of one and backwards of the other form overlap groups. Source:
/// DeepSeek-AI, "DeepSeek-V3 Technical Report", and the published DualPipe code.
#pragma once

#include "stagecraft/scheduler/schedule.h"

namespace stagecraft {

struct DualPipeRow {
  int near_stage = 0;
  int far_stage = 0;
  int half = 0;          ///< rows that a stream crosses before it turns or leaves its half
  int depth = 0;         ///< of this row within its half: 0 at the outer end
  int microbatches = 0;  ///< of each stream
};

[[nodiscard]] Schedule::Row dual_pipe_row(const DualPipeRow& row);

}  // namespace stagecraft
