/// The planners by name. A new one is one source file with its header and one line in the table of
/// registry.cc. Pure; any thread.
#pragma once

#include <span>
#include <string_view>

#include "stagecraft/scheduler/planners/planner.h"

namespace stagecraft {

/// In the order in which people should meet them.
[[nodiscard]] std::span<const PlannerInfo> planners();

/// Errors: UsageArgument for an unknown name, suggesting the nearest.
[[nodiscard]] const PlannerInfo& find_planner(std::string_view name);

}  // namespace stagecraft
