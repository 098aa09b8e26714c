/// check decides whether a schedule may run a program, before anything runs. A trainer uses it too.
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
  std::optional<Layout> layout;  ///< the layout by which to run the schedule; set if ok()
  /// Buffers that forwards write in another order than one process does, such as running
  /// statistics. They end with other bits. This is no fault, but a comparison of runs must take it
  /// into account.
  std::vector<std::string> reordered_buffers;
  std::vector<std::string> notes;  ///< why, a sentence for each stage with reordered buffers
  std::string grid;  ///< the schedule with offending cells marked, and the violations below it

  [[nodiscard]] bool ok() const { return violations.empty(); }

  /// Errors: ScheduleInvalid with the grid.
  void or_throw() const;
};

/// Returns everything that keeps `schedule` from running `program`.
[[nodiscard]] CheckResult check(const Program& program, const Schedule& schedule);

}  // namespace stagecraft
