/// unlike_regions says why ranks that run a stage on microbatches of different shapes cannot
/// compute the samples of its divided regions at once. Each rank computes the samples of all ranks
/// by the capture for its own microbatch.
#pragma once

#include <string>

#include "stagecraft/compiler/stage/stage_program.h"

namespace stagecraft {

/// Compares the divided chunks of two captures of a stage. Returns what differs beside the number
/// of samples, e.g. "calls aten::div.Tensor with other numbers"; empty if nothing does.
/// Requires: they fit one program (VT-1).
[[nodiscard]] std::string unlike_regions(const StageProgram& a, const StageProgram& b);

}  // namespace stagecraft
