/// What readers of files with a line or list per rank ask of the rows once all are read. Pure.
#pragma once

#include <vector>

#include "stagecraft/scheduler/schedule.h"

namespace stagecraft::formats {

/// Whether any cell does something.
[[nodiscard]] bool hold_task(const std::vector<Schedule::Row>& rows);

/// Makes every row of an array as wide as the widest, as ranks may stop early. Returns false, and
/// does nothing, where that would be more cells than a schedule has.
[[nodiscard]] bool pad(std::vector<Schedule::Row>& rows);

}  // namespace stagecraft::formats
