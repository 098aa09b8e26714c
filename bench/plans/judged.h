/// judged returns the simulator's prediction for a program with its own cut, for comparison with a
/// run.
#pragma once

#include "stagecraft/compiler/program/program.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/planners/proposal.h"

namespace stagecraft::bench {

/// Returns the program as a proposal: its own cut, by this schedule.
/// Requires: the costs are of the same model, on microbatches of the program's size.
/// Errors: those of Judge::propose.
[[nodiscard]] PlanProposal judged(const PlanRequest& request,
                                  const Program& program,
                                  const Schedule& schedule);

}  // namespace stagecraft::bench
