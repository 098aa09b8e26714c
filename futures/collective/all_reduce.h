/// all_reduce: the sum of what every member of a group contributes, the same bits on all of them.
///
/// Sums gradients over the replicas of a stage. Added in ascending order of rank (CL-1).
#pragma once

#include <ATen/core/Tensor.h>

#include "stagecraft/futures/collective/collective.h"

namespace stagecraft {

/// Returns the sum; of a group of one, the contribution itself. Read only for the caller (CL-3).
/// Requires: one shape and dtype on all members.
/// Errors: those of Collective::all_gather; Internal for contributions of different shapes.
[[nodiscard]] at::Tensor all_reduce(Collective& collective,
                                    const Group& group,
                                    const Sequence& sequence,
                                    at::Tensor contribution,
                                    Deadline deadline);

}  // namespace stagecraft
