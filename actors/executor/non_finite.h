/// What is not finite ends a step before any weight changes, with the name of what it is.
#pragma once

#include <vector>

#include "stagecraft/actors/executor/stage_runtime.h"
#include "stagecraft/futures/collective/vote.h"

namespace stagecraft {

/// Errors: NonFinite, naming stage and step, when the vote found a gradient that is not finite, and
///         the parameter where one of `stages`, which are this rank's, has it.
void refuse_non_finite(const std::vector<StageRuntime>& stages,
                       const VoteResult& verdict,
                       Step step);

}  // namespace stagecraft
