/// resize makes a program whose stages take microbatches of different sizes (SG-4). Each stage is
/// the one captured on microbatches of its size, so later passes handle only stages.
///
/// RZ-1: a value that crosses between two stages has the same name at both ends, that of the given
///       program. If the stages' sizes differ, its dimension 0 counts samples and is the outermost
///       in memory. So a part of it is a range of its rows.
/// RZ-2: the resulting program takes no batches of other shapes, and is not evaluated.
#pragma once

#include <vector>

#include "stagecraft/compiler/program/program.h"

namespace stagecraft {

/// Returns `program` itself if its stages have these sizes already. `sizes`: by stage; empty if all
/// are 1. Requires: each divides the program's microbatches.
/// Errors: UsageArgument for a program that was made without a module, or resized before;
///         CompileShape if the module cannot be captured on microbatches of a size, and for a value
///         that breaks RZ-1, naming stages and value.
/// Cost: for each new size that of a new shape (shape_captures.h).
[[nodiscard]] Program resize(const Program& program, const std::vector<int>& sizes);

}  // namespace stagecraft
