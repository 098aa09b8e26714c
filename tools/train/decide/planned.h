/// planned does the work of `train --plan` before a run. It measures the uncut model on
/// microbatches of several sizes, and asks a planner for cut, schedule and microbatches. After the
/// run it reports how right the plan was.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "stagecraft/compiler/cut/cut.h"
#include "stagecraft/scheduler/planners/proposal.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/train/decide/step_size.h"
#include "stagecraft/tools/train/options/options.h"
#include "stagecraft/tools/train/work/work.h"

namespace stagecraft::tools {

struct PlannedRun {
  Cut cut;
  PlanRequest request;
  std::vector<PlanProposal> best_first;

  [[nodiscard]] const PlanProposal& best() const { return best_first.front(); }
};

/// Returns the plan. A step keeps its samples, and ranks share this machine's processors. Compiles
/// the uncut model.
/// Requires: the options have a planner.
/// Errors: those of planned_sizes, compile, profile and propose.
[[nodiscard]] PlannedRun plan_run(const TrainOptions& options,
                                  const StepSize& size,
                                  Work& work,
                                  Console& console);

/// Returns "planned: 16 microbatches of 2, zb-h2 by balance on 4 ranks".
[[nodiscard]] std::string chosen_text(const PlannedRun& planned);

/// Returns "planned 12.3 ms a step, measured 12.5 (+1.6 %)". `seconds`: of every step; the first
/// one warms up and does not count if there are others. Requires: a step.
[[nodiscard]] std::string planned_text(const PlannedRun& planned,
                                       const std::vector<double>& seconds);
[[nodiscard]] nlohmann::ordered_json planned_json(const PlannedRun& planned,
                                                  const std::vector<double>& seconds);

}  // namespace stagecraft::tools
