/// check_request checks whether a builder accepts a request: its parameters, chunks, costs and
/// stage graph, and a size that fits into a machine.
///
/// It runs before the builder. The builder itself checks the numbers of devices and microbatches
/// that its algorithm needs (rule V34). Pure; any thread may call it.
#pragma once

#include "stagecraft/scheduler/builders/parts/build_request.h"
#include "stagecraft/scheduler/builders/parts/builder_info.h"

namespace stagecraft {

/// Errors: UsageArgument for something that the builder does not take, or that the request lacks;
/// ScheduleParameter for an illegal number, with the nearest legal one, and for a schedule that is
/// too large.
void check_request(const BuilderInfo& builder, const BuildRequest& request);

}  // namespace stagecraft
