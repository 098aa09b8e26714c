/// feeds_of: which inputs and labels of a batch one rank's list receives from the driver.
///
/// By it the driver knows what to send, and a rank what to read where it reads its batches itself.
#pragma once

#include <vector>

#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/stage_program.h"

namespace stagecraft {

/// In the order of the list. `stages`: those of the list, among others perhaps.
[[nodiscard]] std::vector<Feed> feeds_of(const RankPlan& list,
                                         const std::vector<StageProgram>& stages);

}  // namespace stagecraft
