/// trace_step makes the TraceStep of a plan whose ranks recorded their timelines.
#pragma once

#include <cstdint>
#include <vector>

#include "stagecraft/actors/executor/device/timeline.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/tools/trace/trace_step.h"

namespace stagecraft::tools {

/// Returns the step.
/// Requires: `timelines` has a list per rank of the plan, each with a time per instruction.
[[nodiscard]] TraceStep trace_step(std::int64_t step,
                                   const Plan& plan,
                                   const Layout& layout,
                                   const std::vector<std::vector<InstructionTime>>& timelines);

}  // namespace stagecraft::tools
