/// planned: what `train --plan` does before a run: it measures the uncut model, asks a planner
/// where to cut it and by which schedule to train it, and tells afterwards how right the plan was.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "stagecraft/scheduler/planners/proposal.h"
#include "stagecraft/tools/console.h"
#include "stagecraft/tools/train/options.h"
#include "stagecraft/tools/train/schedule_choice.h"

namespace stagecraft::tools {

struct PlannedRun {
  ScheduleChoice choice;
  PlanRequest request;
  std::vector<PlanProposal> best_first;

  [[nodiscard]] const PlanProposal& best() const { return best_first.front(); }
};

/// `options`: settled, with a planner. Microbatches are those of the options: cut and schedule are
/// chosen. Ranks share this machine's processors.
/// Errors: those of compile, profile and propose.
[[nodiscard]] PlannedRun plan_run(const TrainOptions& options, Console& console);

/// "planned 12.3 ms a step, measured 12.5 (+1.6 %)". `seconds`: of every step; the first, which
/// warms up, does not count where there are others. Requires: a step.
[[nodiscard]] std::string planned_text(const PlannedRun& planned,
                                       const std::vector<double>& seconds);
[[nodiscard]] nlohmann::ordered_json planned_json(const PlannedRun& planned,
                                                  const std::vector<double>& seconds);

}  // namespace stagecraft::tools
