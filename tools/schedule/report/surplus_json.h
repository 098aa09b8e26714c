/// surplus_json writes the tasks of a schedule that do nothing, for programs: one object per stage
/// and kind.
#pragma once

#include <nlohmann/json.hpp>

#include "stagecraft/scheduler/model/surplus.h"

namespace stagecraft::tools {

/// Returns [{"stage": 0, "kind": "B", "tasks": 8}].
[[nodiscard]] nlohmann::ordered_json surplus_json(const std::vector<Surplus>& surplus);

}  // namespace stagecraft::tools
