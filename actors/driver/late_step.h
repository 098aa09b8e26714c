/// late_step: says which rank holds up a step that was not done in time, from the reports of the
/// agents of the ranks that have not answered. A slow rank has an agent that says so. A rank whose
/// agent owes an answer is silent.
///
/// LS-1: the blamed rank is one at the end of a chain of waits, never one that is known to wait. If
///       chains end at several ranks, it is a silent one, then the one that most ranks wait for,
///       directly or not; among equals the one longest in its instruction.
#pragma once

#include <chrono>
#include <vector>

#include "stagecraft/actors/driver/wait_graph.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

/// Returns a ClusterTimeout. Its message is the chain of waits, and its place is that of the rank
/// at the end. It blames no rank if the chain ends at the driver or at a rank that has answered, or
/// if the chain is a cycle.
[[nodiscard]] Error late_step(std::vector<UnfinishedRank> unfinished,
                              const Plan& plan,
                              std::chrono::milliseconds deadline);

}  // namespace stagecraft
