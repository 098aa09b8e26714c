/// TimeSlots collects rows that are defined by numbered time slots (Chimera, Hanayo) instead of by
/// a list.
#pragma once

#include <vector>

#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

class TimeSlots {
 public:
  TimeSlots(int rows, int slots);
  /// Requires: the slot is free.
  void put(int row, int slot, const Task& task);
  /// Returns each row's tasks by slot.
  [[nodiscard]] std::vector<Schedule::Row> rows() const { return cells_; }

 private:
  std::vector<Schedule::Row> cells_;
};

}  // namespace stagecraft
