/// Sums a stage's gradients over its copies, before the vote. Each copy has seen its share of the
/// microbatches, and all continue with the same bits.
#pragma once

#include <vector>

#include "stagecraft/actors/executor/stage/bucket.h"
#include "stagecraft/futures/collective/collective.h"

namespace stagecraft {

/// Enters a group of the ranks with copies and replaces the gradients by the sum over all copies.
/// `mine`: the buckets on this rank, in the order of their replicas. `sequence`: the step's; its
/// numbers are given here. Errors: those of all_reduce and its wait.
void sum_over_replicas(Collective& collective,
                       const Group& group,
                       const std::vector<const Bucket*>& mine,
                       const Sequence& sequence,
                       Deadline deadline);

}  // namespace stagecraft
