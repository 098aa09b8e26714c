/// order_check decides whether a rank can run an ordered step.
#pragma once

#include <cstdint>

#include "stagecraft/actors/executor/run/rank_programs.h"
#include "stagecraft/actors/executor/setup/rank_setup.h"
#include "stagecraft/actors/executor/step/step_record.h"

namespace stagecraft {

/// Checks an order. `accumulated`: the batches whose gradients the rank keeps for the update
/// (AC-1).
/// Errors: PlanInvalid for a program or a shape that the rank does not know, for microbatches that
/// are not those of the plan, for weights that no mean can have, for updates of groups that no run
/// can have, and for a batch that does not follow the batches that the rank keeps.
void check_order(const StepOrder& order,
                 const RankSetup& setup,
                 const RankPrograms& programs,
                 std::int32_t accumulated);

}  // namespace stagecraft
