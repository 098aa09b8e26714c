/// run_transfers runs the instruction lists of a plan as GPUs and NCCL would, without threads,
/// times or tensors: to their end, or to the point where nothing moves.
///
/// Its rules are those of CUDA and NCCL, and those by which a rank issues (NcclLinks):
/// TM-1: a host issues its list in order. At a receive it waits until the send is issued; at the
///       end of a sum, until all members have issued its start; at a vote, for its stream.
/// TM-2: a stream works in order. Streams share hardware queues, in which nothing begins before
///       what was issued earlier.
/// TM-3: a send, a receive or a sum is a kernel, which stays on its device until all other ends run
///       too. A device holds no more than some of them. The n-th send of a pair of ranks meets its
///       n-th receive.
#pragma once

#include <string>

#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft::tests {

struct TransferRules {
  int resident = 1 << 20;  ///< kernels of transfers and sums on a device
  int queues = 1 << 20;    ///< hardware queues of a device
};

/// Runs the plan. Returns an empty text if all lists come to their end; else what each rank stands
/// at, or which send meets a receive of another tensor.
[[nodiscard]] std::string run_transfers(const Plan& plan, const TransferRules& rules);

}  // namespace stagecraft::tests
