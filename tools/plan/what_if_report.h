/// what_if_report shows the effect of --what-if: the best plan without the changes beside the best
/// one with them.
#pragma once

#include <optional>
#include <string>

#include "stagecraft/scheduler/planners/proposal.h"

namespace stagecraft::tools {

/// PlanBefore is the best plan without the changes, or nothing if none fits.
using PlanBefore = std::optional<PlanProposal>;

/// Returns the time of a step, the bubble, and the most bytes of each device, before and after.
[[nodiscard]] std::string what_if_text(int devices,
                                       const PlanBefore& before,
                                       const PlanProposal& after);

}  // namespace stagecraft::tools
