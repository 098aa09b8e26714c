/// plan_page writes the plan as one HTML page: `stagecraft plan --html`.
#pragma once

#include <span>
#include <string>

#include "stagecraft/scheduler/planners/proposal.h"

namespace stagecraft::tools {

/// Returns the page. Requires: at least one proposal, the best first.
[[nodiscard]] std::string plan_page(const PlanRequest& request,
                                    std::span<const PlanProposal> best_first);

}  // namespace stagecraft::tools
