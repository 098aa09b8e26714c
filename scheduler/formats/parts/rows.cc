#include "stagecraft/scheduler/formats/parts/rows.h"

#include <algorithm>

#include "stagecraft/scheduler/formats/parts/cell_text.h"

namespace stagecraft::formats {

bool hold_task(const std::vector<Schedule::Row>& rows) {
  return std::ranges::any_of(
      rows, [](const Schedule::Row& row) { return !std::ranges::all_of(row, &Cell::idle); });
}

bool pad(std::vector<Schedule::Row>& rows) {
  std::size_t width = 0;
  for (const Schedule::Row& row : rows) {
    width = std::max(width, row.size());
  }
  if (!has_room(0, width * rows.size())) {
    return false;
  }
  for (Schedule::Row& row : rows) {
    row.resize(width);
  }
  return true;
}

}  // namespace stagecraft::formats
