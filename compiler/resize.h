/// resize: a program whose stages take microbatches of different sizes (SG-4): each stage as it was
/// captured on microbatches of its size, so that all behind sees nothing but stages.
///
/// RZ-1: what crosses between two stages has the same name at both ends, that of the program given;
///       where their sizes differ, its dimension 0 counts samples and is the outermost in memory.
///       So a part of it is a range of its rows.
/// RZ-2: the program that comes of it takes no batches of other shapes, and is not evaluated.
#pragma once

#include <vector>

#include "stagecraft/compiler/program.h"

namespace stagecraft {

/// Returns `program` itself where these are the sizes that its stages have. `sizes`: by stage;
/// empty: all 1. Requires: each divides the program's microbatches.
/// Errors: UsageArgument for a program that was made without a module, or resized before;
///         CompileShape where the module cannot be captured on microbatches of such a size, and
///         for what breaks RZ-1, naming stages and value.
/// Cost: for each new size that of a new shape (variants.h).
[[nodiscard]] Program resize(const Program& program, const std::vector<int>& sizes);

}  // namespace stagecraft
