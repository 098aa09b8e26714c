/// regrouped puts rows of some tensors into one tensor, where a value crosses between stages that
/// take microbatches of different sizes.
///
/// Executors (Op::Regroup) and the reference use it.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/plan/instruction.h"

namespace stagecraft {

/// Returns those rows concatenated: a view for one tensor, a copy for several. The result is
/// contiguous if the tensors are. Requires: as many ranges as tensors, at least one.
/// Errors: PlanInvalid for a tensor whose dimension 0 does not divide into that many equal parts.
[[nodiscard]] at::Tensor regrouped(const std::vector<at::Tensor>& tensors,
                                   const std::vector<RowRange>& rows);

}  // namespace stagecraft
