/// regrouped: rows of some tensors as one tensor, where a value crosses between stages that take
/// microbatches of different sizes.
///
/// Used by executors (Op::Regroup) and by the reference.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/plan/instruction.h"

namespace stagecraft {

/// Returns those rows one behind the other: of one tensor a view, of several a copy; contiguous
/// where they are. Requires: as many ranges as tensors, one at least.
/// Errors: PlanInvalid for a tensor whose dimension 0 is not so many equal parts.
[[nodiscard]] at::Tensor regrouped(const std::vector<at::Tensor>& tensors,
                                   const std::vector<RowRange>& rows);

}  // namespace stagecraft
