/// repair_steps makes a broken schedule valid, by one small change after the other.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/tools/schedule/input/input.h"

namespace stagecraft::tools {

struct Repaired {
  Schedule schedule;
  std::vector<std::string> steps;  ///< the changes: "exchanged 0B0 and 0F1 of row 0 (...)"
  std::vector<Violation> left;     ///< empty: the schedule is valid
};

/// Corrects wrong numbers (find_mistyped), exchanges cells as the rules propose or so that the rows
/// run further (find_unlocking), and lays out an array again if only columns are too early. Stops
/// when the schedule is valid, when no change is left, or after a hundred steps.
[[nodiscard]] Repaired repair_steps(const ScheduleFile& file);

}  // namespace stagecraft::tools
