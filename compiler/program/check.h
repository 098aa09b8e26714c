/// check decides whether a schedule may run a program, before anything runs. Trainers use it too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/compiler/program/program.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/rules/validate.h"

namespace stagecraft {

struct CheckResult {
  std::vector<Violation> violations;
  /// The schedule as ranks run it: the given one, with the driver's row if the program has code
  /// there (driver_row.h). Set if ok().
  std::optional<Schedule> schedule;
  std::optional<Layout> layout;  ///< that of `schedule`; set if ok()
  /// Buffers that forwards write in another order than one process does, such as running
  /// statistics. They end with other bits. This is no fault, but a comparison of runs must take it
  /// into account.
  std::vector<std::string> reordered_buffers;
  /// the reasons, a sentence for each stage with reordered buffers
  std::vector<std::string> notes;
  std::string grid;  ///< the schedule with offending cells marked, and the violations below it

  [[nodiscard]] bool ok() const { return violations.empty(); }

  /// Throws ScheduleInvalid with the grid unless ok().
  void or_throw() const;
};

/// Returns all reasons why `schedule` cannot run `program`.
[[nodiscard]] CheckResult check(const Program& program, const Schedule& schedule);

}  // namespace stagecraft
