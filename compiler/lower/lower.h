/// Lowering: from a schedule to instruction lists. There is one: a schedule becomes Place and Order
/// on the training DAG, and the DAG is lowered.
#pragma once

#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/program.h"
#include "stagecraft/compiler/training/dag.h"
#include "stagecraft/scheduler/layout.h"
#include "stagecraft/scheduler/schedule.h"

namespace stagecraft {

/// Returns the plan of a placed and ordered DAG.
/// Ensures: verify() finds nothing.
/// Errors:  PlanInvalid, with every rule that does not hold.
[[nodiscard]] Plan lower(const TrainingDag& dag, const CompiledProgram& program);

/// The whole way: build, place, order, lower. `training` false keeps the forwards only.
/// Requires: validate() finds nothing in the schedule; `layout` is its own, and the program is laid
/// out by it (replicate.h).
/// Ensures: the plan's ranks are the layout's.
[[nodiscard]] Plan lower_schedule(const Program& program,
                                  const Schedule& schedule,
                                  const Layout& layout,
                                  bool training);

}  // namespace stagecraft
