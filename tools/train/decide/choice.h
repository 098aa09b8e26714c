/// Choice holds the decisions of a run that the options leave open: how its work is divided, in
/// which order ranks compute, and at which step it ends.
///
/// Only decide() makes it.
#pragma once

#include <cstdint>
#include <optional>

#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/strategy/strategy.h"
#include "stagecraft/tools/train/work/work_shape.h"

namespace stagecraft::tools {

struct Choice {
  WorkShape shape;  ///< of a step, over all copies of the pipeline
  Schedule schedule;
  Layout layout;                     ///< of the schedule
  std::optional<Strategy> strategy;  ///< of --strategy; the schedule is then the order of its ranks
  ReplicateOptions copies = {};      ///< how copies of a stage share gradients without a strategy
  std::int64_t steps = 0;            ///< the step at which the run ends
};

}  // namespace stagecraft::tools
