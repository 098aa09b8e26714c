/// dual_pipe_row writes the eight phases that DualPipe and DualPipeV share: one row serves two
/// streams of microbatches.
///
/// The "near" stream has its first stages on this row's half; the "far" stream comes from the other
/// end. A forward of one stream and a backward of the other form an overlap group. Source:
/// DeepSeek-AI, "DeepSeek-V3 Technical Report", and the published DualPipe code.
#pragma once

#include "stagecraft/scheduler/model/schedule.h"

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
