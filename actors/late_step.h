/// late_step: says who holds up a step that was not done in time, from what the agents of the ranks
/// that have not answered report. A rank that is slow has an agent that says so; one whose agent
/// owes its answer is silent.
///
/// LS-1: blamed is whoever a chain of waits ends at, never one that is known to wait itself. Where
///       chains end at several, it is a silent one, then the one that most ranks wait for, directly
///       or not; of these the one longest in its instruction.
#pragma once

#include <chrono>
#include <vector>

#include "stagecraft/actors/wait_graph.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

/// Returns a ClusterTimeout whose message is the chain of waits and whose place is that of the rank
/// at its end. No rank is blamed where the chain ends at the driver or a rank that has answered, or
/// bites its own tail.
[[nodiscard]] Error late_step(std::vector<UnfinishedRank> unfinished,
                              const Plan& plan,
                              std::chrono::milliseconds deadline);

}  // namespace stagecraft
