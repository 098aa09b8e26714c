/// report writes a plan as text, as JSON, and as the files that `stagecraft train` takes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "stagecraft/scheduler/planners/proposal.h"
#include "stagecraft/tools/plan/what_if_report.h"

namespace stagecraft::tools {

/// Returns "12.3 ms", "1.2 s".
[[nodiscard]] std::string time_text(double seconds);

/// Returns the share of a step in which the devices of a plan do not compute.
[[nodiscard]] double bubble_of(const PlanProposal& plan);

/// Returns the best plan, its stages and devices, and up to `top` others. Requires: at least one.
[[nodiscard]] std::string plan_text(const PlanRequest& request,
                                    std::span<const PlanProposal> best_first,
                                    int top);

/// Returns the changes that let the runner-up win, also for faster plans that do not fit.
[[nodiscard]] std::vector<std::string> why_sentences(const PlanRequest& request,
                                                     std::span<const PlanProposal> best_first);
[[nodiscard]] std::string why_text(const PlanRequest& request,
                                   std::span<const PlanProposal> best_first);

/// `before`: nullptr if no change was asked for.
[[nodiscard]] std::string plan_json(const PlanRequest& request,
                                    std::span<const PlanProposal> best_first,
                                    int top,
                                    bool why,
                                    const PlanBefore* before);

/// Returns the cut for `train --cut @FILE`: operators by their ids, one line per stage, the samples
/// of the schedule's microbatches, and, if the costs name every operator, the hash of the names.
[[nodiscard]] std::string cut_text(const PlanRequest& request, const PlanProposal& proposal);

}  // namespace stagecraft::tools
