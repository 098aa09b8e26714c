/// model_dag makes the training DAG of a model's stages, whose chunks know their operators.
#pragma once

#include <string>

#include "stagecraft/compiler/program/program.h"
#include "stagecraft/scheduler/dag/dag.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/strategy/strategy.h"

namespace stagecraft::tools {

/// Applies a strategy to the program: the same DAG as that of its training, before it is lowered.
/// Errors: those of apply() and in_chunks().
[[nodiscard]] TrainingDag model_dag(const Program& program, const Strategy& strategy);

/// Applies the strategy that a schedule stands for.
/// Errors: ScheduleInvalid with every violation on the grid; those of resize() and apply().
[[nodiscard]] TrainingDag model_dag(const Program& program, const Schedule& schedule);

}  // namespace stagecraft::tools
