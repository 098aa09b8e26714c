/// The registry lists the planners by name. A new planner is one source file with its header, one
/// line in the table of registry.cc, one test of its own and one line of docs/planning.md. The
/// smallest planner to copy is tests/scheduler/planners/even_cut.cc. Pure; any thread.
#pragma once

#include <span>
#include <string_view>

#include "stagecraft/scheduler/planners/request/planner.h"

namespace stagecraft {

/// Returns the planners, the most useful for a newcomer first.
[[nodiscard]] std::span<const PlannerInfo> planners();

/// Returns the planner. Errors: UsageArgument for an unknown name, with the nearest known one.
[[nodiscard]] const PlannerInfo& find_planner(std::string_view name);

}  // namespace stagecraft
