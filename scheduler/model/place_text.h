/// place_text names the place of a cell for messages. Pure; any thread.
#pragma once

#include <string>

#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// Returns "row 0, column 2", or "row 0, position 2" for a list.
[[nodiscard]] std::string place_text(const Schedule& schedule, int row, int column);

}  // namespace stagecraft
