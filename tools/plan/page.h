/// The plan as one page for a browser: `stagecraft plan --html`.
#pragma once

#include <span>
#include <string>

#include "stagecraft/scheduler/planners/proposal.h"

namespace stagecraft::tools {

/// Requires: a proposal at least, the best first.
[[nodiscard]] std::string plan_page(const PlanRequest& request,
                                    std::span<const PlanProposal> best_first);

}  // namespace stagecraft::tools
