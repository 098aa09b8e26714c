/// timeline_json writes, for programs, why the rows of a simulated step are idle, and which tasks
/// decide its end.
#pragma once

#include <nlohmann/json.hpp>

#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft::tools {

/// Returns idle time by cause, one object per row.
[[nodiscard]] nlohmann::ordered_json causes_json(const Timeline& timeline);

/// Returns the largest bubbles, the same that people get.
[[nodiscard]] nlohmann::ordered_json bubbles_json(const Timeline& timeline);

/// Returns the tasks in running order: ["0F0", "1F0"].
[[nodiscard]] nlohmann::ordered_json path_json(const Timeline& timeline);

}  // namespace stagecraft::tools
