/// late_step finds the rank that holds up a late step, from the reports of the agents of the ranks
/// that have not answered. The agent of a slow rank says what the rank does. A rank whose agent
/// owes an answer is silent.
///
/// LS-1: the blamed rank is at the end of a chain of waits, and is never one that is known to wait.
///       If chains end at several ranks, the order of preference is: a silent rank; the rank that
///       most ranks wait for, directly or not; the rank that has been longest in its instruction.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "stagecraft/actors/driver/wait_graph.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

/// Returns who waits for whom: the chain to the rank at its end, then the other ranks.
/// `in_order`: as WaitGraph's. Requires: `unfinished` has a rank.
[[nodiscard]] std::string wait_sentence(std::vector<UnfinishedRank> unfinished,
                                        const Plan& plan,
                                        bool in_order = true);

/// Returns a ClusterTimeout. Its message is the chain of waits, and its place is that of the rank
/// at the end. It blames no rank if the chain ends at the driver, or at a rank that has answered or
/// has sent what it owes, or if the chain is a cycle.
[[nodiscard]] Error late_step(std::vector<UnfinishedRank> unfinished,
                              const Plan& plan,
                              std::chrono::milliseconds deadline,
                              bool in_order = true);

}  // namespace stagecraft
