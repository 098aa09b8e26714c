/// zb_auto_options: the costs and the memory that a request gives to ZB-auto.
///
/// Times come with the request's costs, or as its parameters f, i, w and c, which go before.
#pragma once

#include "stagecraft/scheduler/build_request.h"
#include "stagecraft/scheduler/builders/zb_auto.h"

namespace stagecraft {

/// Errors: UsageArgument for a parameter that is no number; ScheduleParameter for another number of
/// times than devices.
[[nodiscard]] ZbAutoOptions zb_auto_options(const BuildRequest& request);

}  // namespace stagecraft
