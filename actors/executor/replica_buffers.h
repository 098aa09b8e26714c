/// What a stage's forwards wrote in its buffers, where it has copies: behind every step all copies
/// go on with what the first one has, as data-parallel training in PyTorch does it. Statistics are
/// then those of the first replica's share of the microbatches.
#pragma once

#include <vector>

#include "stagecraft/actors/executor/stage_runtime.h"
#include "stagecraft/futures/collective/collective.h"

namespace stagecraft {

/// Enters the replica group `group`, whose copies here are `mine`; does nothing for a stage that
/// writes no buffer. Errors: those of all_gather and its wait.
void take_buffers_of_first(Collective& collective,
                           const Group& group,
                           const std::vector<const StageRuntime*>& mine,
                           const Sequence& sequence,
                           Deadline deadline);

}  // namespace stagecraft
