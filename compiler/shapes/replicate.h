/// replicate lays the stages of a program out once per replica of a schedule, so that lowering and
/// executor only handle stages.
///
/// RL-1: copies of a stage share graph values, parameters and constants by position; they differ in
///       their own number and in those of their neighbors.
#pragma once

#include <vector>

#include "stagecraft/compiler/program/program.h"
#include "stagecraft/compiler/stage/stage_program.h"
#include "stagecraft/scheduler/model/layout.h"

namespace stagecraft {

/// Returns `program` itself for one replica.
/// Errors: ScheduleParameter if there are several replicas and the program's number of stages
///         differs from that of each replica.
[[nodiscard]] Program replicate(const Program& program, const Layout& layout);

/// Returns the stages of a program or of its capture for another shape, once per replica, by id.
[[nodiscard]] std::vector<StageProgram> replicate(const std::vector<StageProgram>& stages,
                                                  const Layout& layout);

}  // namespace stagecraft
