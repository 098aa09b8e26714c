/// repair_steps: a broken schedule made valid, one small change after the other.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/validate.h"
#include "stagecraft/tools/schedule/input.h"

namespace stagecraft::tools {

struct Repaired {
  Schedule schedule;
  std::vector<std::string> steps;  ///< what was done: "exchanged 0B0 and 0F1 of row 0 (...)"
  std::vector<Violation> left;     ///< empty: the schedule is valid
};

/// Mends wrong numbers (find_mistyped), exchanges cells as the rules propose or as lets the rows
/// run further (find_unlocking), and lays an array out anew where only columns are too early; up to
/// a hundred steps, until the schedule is valid or none of these is left.
[[nodiscard]] Repaired repair_steps(const ScheduleFile& file);

}  // namespace stagecraft::tools
