/// Why the rows of a simulated step stand idle, and what decides the end, for programs.
#pragma once

#include <nlohmann/json.hpp>

#include "stagecraft/scheduler/simulate.h"

namespace stagecraft::tools {

/// Returns idle time by cause, one object per row.
[[nodiscard]] nlohmann::ordered_json causes_json(const Timeline& timeline);

/// Returns the largest bubbles, those that people are shown.
[[nodiscard]] nlohmann::ordered_json bubbles_json(const Timeline& timeline);

/// Returns the tasks, the first to run first: ["0F0", "1F0"].
[[nodiscard]] nlohmann::ordered_json path_json(const Timeline& timeline);

}  // namespace stagecraft::tools
