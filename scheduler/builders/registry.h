/// The registry lists the builders by name, with their parameters and constraints. The commands
/// `schedule` and `train` make their schedules here, and tests go through all builders.
///
/// A new builder is one source file with its header, one line in the table of registry.cc, one test
/// of its own and one line of docs/builders.md. The smallest builder to copy is
/// zero_bubble/zb_h1.cc. Pure; any thread.
#pragma once

#include <span>
#include <string_view>

#include "stagecraft/scheduler/builders/parts/build_request.h"
#include "stagecraft/scheduler/builders/parts/builder_info.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// Returns all builders; those that newcomers need most are first.
[[nodiscard]] std::span<const BuilderInfo> builders();

/// Returns the builder. Errors: UsageArgument for an unknown name, with the nearest known one.
[[nodiscard]] const BuilderInfo& find_builder(std::string_view name);

/// Returns the schedule that builder `name` makes for the request.
/// Errors: UsageArgument for an unknown name or parameter, or a value that is no number;
/// ScheduleParameter (rule V34) for illegal values, with the constraint and the nearest legal ones.
[[nodiscard]] Schedule build_schedule(std::string_view name, const BuildRequest& request);

}  // namespace stagecraft
