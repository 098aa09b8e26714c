/// lower turns a training DAG into instruction lists. There is only one lowering: a schedule
/// becomes a strategy, a strategy becomes a DAG, and the DAG is lowered.
#pragma once

#include <vector>

#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/program/pass_time.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/scheduler/dag/issue/issue.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/strategy/strategy.h"

namespace stagecraft {

struct Lowered {
  Plan plan;
  IssuedDag issued;  ///< the DAG that the plan was made from
  std::vector<PassTime> passes;
};

/// Returns the plan of a strategy. With `training` false it keeps the forwards only.
/// `trained`: of an evaluation whose program is in chunks (evaluation_chunks.h), the plan of the
/// program that trains. The forwards gather the weights that its groups split, chunk by chunk.
/// `layout` says which stages of the schedule are copies of one stage of the program; its ranks are
/// not used.
/// Errors: ScheduleInvalid with all faults of the strategy, and for a training step that shards
///         regions, which no rank does yet, or weights that several buckets use; PlanInvalid
///         with every rule that is broken.
[[nodiscard]] Lowered lower(const Program& program,
                            const Strategy& strategy,
                            const Layout& layout,
                            bool training,
                            const Plan* trained = nullptr);

/// Returns the plan of the strategy that a schedule stands for (strategy_of.h).
/// Requires: validate() finds nothing in the schedule; `layout` is the schedule's.
/// Ensures: the plan's ranks are the layout's.
[[nodiscard]] Plan lower_schedule(const Program& program,
                                  const Schedule& schedule,
                                  const Layout& layout,
                                  bool training);

}  // namespace stagecraft
