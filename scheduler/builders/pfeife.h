/// Pfeife's family of schedules: loops, blocks and extra forwards cover GPipe, 1F1B, interleaved,
/// TeraPipe and BFS.
///
///     (loops - 1) x block + (D - r) + extra[r] forwards on row r, one backward,
///     then forward and backward in turn
///
/// A block of microbatches passes through all of a row's stages before the next block starts.
/// Source: "Pfeife: Automatic Pipeline Parallelism for PyTorch", with the warm-up of its appendix.
#pragma once

#include <vector>

#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

struct PfeifeOptions {
  int loops = 1;
  int block = 0;           ///< microbatches; 0: all of them
  std::vector<int> extra;  ///< forwards before the first backward, by row; empty: none
};

/// Returns the unit-time array of `ranks` rows and ranks x loops stages.
/// Errors: ScheduleParameter unless the block divides the microbatches, there is one non-negative
/// extra per row, and no row warms up with more forwards than the row above (it would wait for them
/// forever).
[[nodiscard]] Schedule pfeife(int ranks, int microbatches, const PfeifeOptions& options = {});

}  // namespace stagecraft
