/// rows.h helps readers of files that have a line or list per rank, after all rows are read. Pure.
#pragma once

#include <vector>

#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft::formats {

/// Returns whether any cell holds a task.
[[nodiscard]] bool hold_task(const std::vector<Schedule::Row>& rows);

/// Makes every row of an array as wide as the widest, because ranks may stop early. Returns false
/// and changes nothing if a schedule cannot have that many cells.
[[nodiscard]] bool pad(std::vector<Schedule::Row>& rows);

}  // namespace stagecraft::formats
