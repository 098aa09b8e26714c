/// strategy_of turns a schedule and a layout into directives: the step is split into the schedule's
/// microbatches, each stage is placed on the ranks of its row, copies of a stage share gradients,
/// and each row becomes one order.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/strategy/strategy.h"

namespace stagecraft {

/// DividedRegion says that the ranks of a stage divide the weights of its regions with a tag.
struct DividedRegion {
  StageId stage;
  std::string tag;
  int parts = 0;  ///< as in ShardDirective
};

/// Returns the strategy. `options`: of the sums over copies. Stages are the schedule's,
/// microbatches the step's.
/// Requires: validate() finds nothing in the schedule; `layout` is the schedule's.
[[nodiscard]] Strategy strategy_of(const Schedule& schedule,
                                   const Layout& layout,
                                   const ReplicateOptions& options = {},
                                   const std::vector<DividedRegion>& divided = {});

}  // namespace stagecraft
