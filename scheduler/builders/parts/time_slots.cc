#include "stagecraft/scheduler/builders/parts/time_slots.h"

#include <fmt/format.h>

#include "stagecraft/base/check.h"

namespace stagecraft {

TimeSlots::TimeSlots(int rows, int slots)
    : cells_(static_cast<std::size_t>(rows), Schedule::Row(static_cast<std::size_t>(slots))) {}

void TimeSlots::put(int row, int slot, const Task& task) {
  Cell& cell = cells_[static_cast<std::size_t>(row)][static_cast<std::size_t>(slot)];
  SC_CHECK(cell.idle(),
           fmt::format("slot {} of row {} holds {}, but {} needs it too",
                       slot,
                       row,
                       to_string(cell),
                       to_string(task)));
  cell = Cell(task);
}

}  // namespace stagecraft
