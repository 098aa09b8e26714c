/// operator_constraints reads which operators of a model stay in one stage (--together), and which
/// device runs it (--on-device).
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/planners/request/planner.h"

namespace stagecraft::tools {

/// Puts the constraints into the request, whose costs and devices are known.
/// `together`: words such as "3-9"; `on_device`: words such as "0:3-9".
/// Errors: UsageArgument for words that name other operators or devices, and for operators of one
/// stage that two words put on different devices.
void constrain_operators(const std::vector<std::string>& together,
                         const std::vector<std::string>& on_device,
                         PlanRequest& request);

}  // namespace stagecraft::tools
