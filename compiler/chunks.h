/// cut_into_chunks: puts borders of autograd into a stage.
///
/// Recompute, expert regions, sharded buckets and native code want a stage in parts that are
/// differentiated one by one. Borders change no bit: values cross them as they are, and a chunk's
/// backward goes on with the sums that later chunks have begun (CB-1).
#pragma once

#include <cstddef>
#include <vector>

#include "stagecraft/compiler/stage_program.h"

namespace stagecraft {

/// Cuts a stage of one chunk before each of the operators at `borders`, ascending positions. What
/// it keeps and needs in bytes stays as it was measured in one piece.
/// Errors: CompilePartition for a border that leaves a chunk empty, and for what chunks cannot
///         share: memory that is written in place where several values of it cross borders, or
///         one of a buffer, constant or parameter; a parameter with hooks in two.
void cut_into_chunks(StageProgram& stage, const std::vector<std::size_t>& borders);

}  // namespace stagecraft
