/// late_step: says who holds up a step that was not done in time, from what its silent ranks'
/// agents report.
///
///   rank 0 --waits for--> rank 2 --waits for--> rank 1, which waits for nobody: it holds them up
///
/// LS-1: blamed is whoever a chain of waits ends at, never one that waits itself. Where chains end
///       at several, it is the one that most ranks wait for, directly or not; of these the one
///       longest in its instruction.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "stagecraft/actors/messages.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

/// A rank that has not answered, with what its agent says; without, where the agent is silent too.
struct SilentRank {
  Rank rank;
  std::optional<StatusReply> status;
};

/// Returns a ClusterTimeout whose message is the chain of waits and whose place is that of the rank
/// at its end. No rank is blamed where the chain ends at the driver or a rank that has answered, or
/// bites its own tail.
[[nodiscard]] Error late_step(std::vector<SilentRank> silent,
                              const Plan& plan,
                              std::chrono::milliseconds deadline);

}  // namespace stagecraft
