/// check_request: whether a builder takes what a request brings: its parameters, chunks, costs and
/// stage graph, and a size that fits into a machine.
///
/// Looked at before the builder runs; what a builder's algorithm needs of devices and microbatches
/// (rule V34), the builder checks itself. Pure; any thread.
#pragma once

#include "stagecraft/scheduler/registry.h"

namespace stagecraft {

/// Errors: UsageArgument for what the builder does not take, or lacks; ScheduleParameter for a
/// number that is not its own, with the nearest that is, and for a schedule that is too large.
void check_request(const BuilderInfo& builder, const BuildRequest& request);

}  // namespace stagecraft
