/// How a plan is told: as text, as JSON, and as the files that `stagecraft train` takes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "stagecraft/scheduler/planners/proposal.h"

namespace stagecraft::tools {

/// "12.3 ms", "1.2 s"
[[nodiscard]] std::string time_text(double seconds);

/// The best plan, its stages and devices, and up to `top` others. Requires: at least one.
[[nodiscard]] std::string plan_text(const PlanRequest& request,
                                    std::span<const PlanProposal> best_first,
                                    int top);

/// What would have to be otherwise for the runner-up, and for faster plans that do not fit, to win.
[[nodiscard]] std::vector<std::string> why_sentences(const PlanRequest& request,
                                                     std::span<const PlanProposal> best_first);
[[nodiscard]] std::string why_text(const PlanRequest& request,
                                   std::span<const PlanProposal> best_first);

[[nodiscard]] std::string plan_json(const PlanRequest& request,
                                    std::span<const PlanProposal> best_first,
                                    int top,
                                    bool why);

/// The cut as `train --cut @FILE` reads it: operators by their ids, one line a stage, and of how
/// many samples the microbatches of the schedule are.
[[nodiscard]] std::string cut_text(const PlanRequest& request, const PlanProposal& proposal);

}  // namespace stagecraft::tools
