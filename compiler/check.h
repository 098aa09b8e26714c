/// check: whether a schedule may run a program, before anything runs. A trainer asks it too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/compiler/program.h"
#include "stagecraft/scheduler/layout.h"
#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/validate.h"

namespace stagecraft {

struct CheckResult {
  std::vector<Violation> violations;
  std::optional<Layout> layout;  ///< the schedule's, to run it by; there when ok()
  /// Buffers that forwards write in another order than one process does: running statistics, which
  /// end with other bits. No fault, but whoever compares runs must know.
  std::vector<std::string> reordered_buffers;
  std::vector<std::string> notes;  ///< why, a sentence for each stage
  std::string grid;  ///< the schedule with offending cells marked, and what is wrong below

  [[nodiscard]] bool ok() const { return violations.empty(); }

  /// Errors: ScheduleInvalid with the grid.
  void or_throw() const;
};

/// Returns everything that keeps `schedule` from running `program`.
[[nodiscard]] CheckResult check(const Program& program, const Schedule& schedule);

}  // namespace stagecraft
