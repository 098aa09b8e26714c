/// non_finite ends a step before any weight changes if a value is not finite, and names the value.
#pragma once

#include <vector>

#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/futures/collective/vote.h"

namespace stagecraft {

/// Checks the result of the vote.
/// Errors: NonFinite, naming stage and step, if the vote found a gradient that is not finite, and
/// the parameter if one of this rank's `stages` has it.
void refuse_non_finite(const std::vector<StageRuntime>& stages,
                       const VoteResult& verdict,
                       Step step);

}  // namespace stagecraft
