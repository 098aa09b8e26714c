/// The sum of a stage's gradients over its copies, before the vote: each copy has seen its share of
/// the microbatches, and all go on with the same bits.
#pragma once

#include <vector>

#include "stagecraft/actors/executor/bucket.h"
#include "stagecraft/futures/collective/collective.h"

namespace stagecraft {

/// Enters a group of the ranks with copies, of which those here have the buckets `mine`, in the
/// order of their replicas; replaces their gradients by the sum over all copies. `sequence` is the
/// step's; its numbers are given here. Errors: those of all_reduce and its wait.
void sum_over_replicas(Collective& collective,
                       const Group& group,
                       const std::vector<const Bucket*>& mine,
                       const Sequence& sequence,
                       Deadline deadline);

}  // namespace stagecraft
