/// cut_into_chunks divides a stage into chunks that autograd differentiates one by one.
///
/// Recompute, expert regions, sharded buckets and native code need such chunks. Borders change no
/// bit: values cross them unchanged, and a chunk's backward continues the sums that later chunks
/// have begun (CB-1).
#pragma once

#include <cstddef>
#include <vector>

#include "stagecraft/compiler/stage/stage_program.h"

namespace stagecraft {

/// Cuts a stage of one chunk before each of the operators at `borders`, which are ascending
/// positions. The stage's kept and needed bytes stay as they were measured in one piece.
/// Errors: CompilePartition for a border that leaves a chunk empty, and for things that chunks
/// cannot share: memory that is written in place, if several of its values cross borders; a single
/// such value of the memory of a buffer, constant or parameter; a parameter with hooks that two
/// chunks use.
void cut_into_chunks(StageProgram& stage, const std::vector<std::size_t>& borders);

}  // namespace stagecraft
