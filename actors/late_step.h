/// late_step: says who holds up a step that was not done in time, from what its silent ranks'
/// agents report.
#pragma once

#include <chrono>
#include <vector>

#include "stagecraft/actors/messages.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

/// Returns a ClusterTimeout with what each silent rank is doing. Its place is that of the first
/// rank that waits for nobody: the others wait for it, directly or not.
[[nodiscard]] Error late_step(std::vector<StatusReply> silent,
                              const Plan& plan,
                              std::chrono::milliseconds deadline);

}  // namespace stagecraft
