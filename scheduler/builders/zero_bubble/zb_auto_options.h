/// zb_auto_options reads the costs and the memory that a request gives to ZB-auto.
///
/// Times come from the request's costs, or from its parameters f, i, w and c, which take
/// precedence.
#pragma once

#include "stagecraft/scheduler/builders/parts/build_request.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_auto.h"

namespace stagecraft {

/// Returns the options of the request.
/// Errors: UsageArgument for a parameter that is no number; ScheduleParameter unless there are as
/// many times as devices.
[[nodiscard]] ZbAutoOptions zb_auto_options(const BuildRequest& request);

}  // namespace stagecraft
