/// feeds_of lists the inputs and labels of a batch that one rank's list receives from the driver.
///
/// The driver uses it to decide what to send. A rank that reads its batches itself uses it to
/// decide what to read.
#pragma once

#include <vector>

#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/stage/stage_program.h"

namespace stagecraft {

/// Returns the feeds in the order of the list. `programs`: those of the list's stages, and possibly
/// others.
[[nodiscard]] std::vector<Feed> feeds_of(const RankList& list,
                                         const RankPlan& rank,
                                         const PlanTables& tables,
                                         const std::vector<const StageProgram*>& programs);

}  // namespace stagecraft
