/// cut_into_chunks: puts borders of autograd into a stage.
///
/// Recompute, expert regions, sharded buckets and native code want a stage in parts that are
/// differentiated one by one. Training with chunks gives the bits of one process that sums
/// gradients chunk by chunk as well (RE-1), not those of the uncut stage: where several chunks read
/// a value or a parameter, sums are added in another order.
#pragma once

#include <cstddef>
#include <vector>

#include "stagecraft/compiler/stage_program.h"

namespace stagecraft {

/// Cuts a stage of one chunk before each of the operators at `borders`, ascending positions. What
/// it keeps and needs in bytes stays as it was measured in one piece.
/// Errors: CompilePartition for a border that leaves a chunk empty, and for what chunks cannot
///         share: an operator that writes memory of another chunk in place, a parameter with hooks
///         in two.
void cut_into_chunks(StageProgram& stage, const std::vector<std::size_t>& borders);

}  // namespace stagecraft
