/// Gives all copies of a stage the buffers of the first copy, after every step, as data-parallel
/// training in PyTorch does. Statistics are then those of the first replica's share of the
/// microbatches.
#pragma once

#include <vector>

#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/futures/collective/collective.h"

namespace stagecraft {

/// Enters the replica group `group`, whose copies on this rank are `mine`. Does nothing for a stage
/// that writes no buffer. Errors: those of all_gather and its wait.
void take_buffers_of_first(Collective& collective,
                           const Group& group,
                           const std::vector<const StageRuntime*>& mine,
                           const Sequence& sequence,
                           Deadline deadline);

}  // namespace stagecraft
