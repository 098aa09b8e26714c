/// feeds_of lists the inputs and labels of a batch that one rank's list receives from the driver.
///
/// The driver uses it to know what to send. A rank that reads its batches itself uses it to know
/// what to read.
#pragma once

#include <vector>

#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/stage/stage_program.h"

namespace stagecraft {

/// Returns the feeds in the order of the list. `stages` includes the stages of the list, and may
/// include others.
[[nodiscard]] std::vector<Feed> feeds_of(const RankPlan& list,
                                         const std::vector<StageProgram>& stages);

}  // namespace stagecraft
