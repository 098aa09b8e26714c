/// planned: what `train --plan` does before a run: it measures the uncut model on microbatches of
/// several sizes, asks a planner where to cut it, by which schedule and in which microbatches to
/// train it, and tells afterwards how right the plan was.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "stagecraft/scheduler/planners/proposal.h"
#include "stagecraft/tools/console.h"
#include "stagecraft/tools/train/options.h"
#include "stagecraft/tools/train/schedule_choice.h"
#include "stagecraft/tools/train/work.h"

namespace stagecraft::tools {

struct PlannedRun {
  ScheduleChoice choice;
  PlanRequest request;
  std::vector<PlanProposal> best_first;

  [[nodiscard]] const PlanProposal& best() const { return best_first.front(); }
};

/// The model as one stage on one rank, in the microbatches that the options say.
[[nodiscard]] ScheduleChoice uncut(const TrainOptions& options);

/// `options`: settled, with a planner. The samples of a step stay theirs, and ranks share this
/// machine's processors. `work`: of these options; it compiles its model here, a run opens another.
/// Errors: those of planned_sizes, compile, profile and propose.
[[nodiscard]] PlannedRun plan_run(const TrainOptions& options, Work& work, Console& console);

/// "planned: 16 microbatches of 2, zb-h2 by balance on 4 workers"
[[nodiscard]] std::string chosen_text(const PlannedRun& planned);

/// "planned 12.3 ms a step, measured 12.5 (+1.6 %)". `seconds`: of every step; the first, which
/// warms up, does not count where there are others. Requires: a step.
[[nodiscard]] std::string planned_text(const PlannedRun& planned,
                                       const std::vector<double>& seconds);
[[nodiscard]] nlohmann::ordered_json planned_json(const PlannedRun& planned,
                                                  const std::vector<double>& seconds);

}  // namespace stagecraft::tools
