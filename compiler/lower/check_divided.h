/// check_divided checks that ranks can divide the weights of a region among them: that each of its
/// experts works by itself.
#pragma once

#include <cstdint>

#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/stage/stage_program.h"

namespace stagecraft {

/// Checks a chunk, and runs it whole and divided on drawn values.
/// Errors: CompilePartition says what the region does that cannot be divided (division.h), also
/// that it has sizes as numbers in it, or experts that see each other.
void check_divided(const CompiledProgram& program,
                   const StageProgram& stage,
                   std::int32_t chunk,
                   std::int64_t ranks);

}  // namespace stagecraft
