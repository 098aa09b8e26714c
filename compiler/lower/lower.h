/// lower turns a schedule into instruction lists. There is only one lowering: a schedule becomes
/// Place and Order on the training DAG, and the DAG is lowered.
#pragma once

#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/compiler/training/dag.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// Returns the plan of a placed and ordered DAG.
/// Ensures: verify() finds nothing.
/// Errors: PlanInvalid, with every rule that is broken.
[[nodiscard]] Plan lower(const StepDag& dag, const CompiledProgram& program);

/// Does everything: build, place, order, lower. With `training` false it keeps the forwards only.
/// Requires: validate() finds nothing in the schedule; `layout` is the schedule's, and the program
///           is laid out by it (replicate.h).
/// Ensures: the plan's ranks are the layout's.
[[nodiscard]] Plan lower_schedule(const Program& program,
                                  const Schedule& schedule,
                                  const Layout& layout,
                                  bool training);

}  // namespace stagecraft
