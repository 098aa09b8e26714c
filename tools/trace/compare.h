/// `stagecraft trace compare PLAN TRACE`: a schedule file against what a traced run made of it.
#pragma once

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>

namespace stagecraft::tools {

struct CompareOptions {
  std::string plan;                  ///< a schedule file
  std::string trace;                 ///< written by `stagecraft train --trace`
  std::optional<std::string> costs;  ///< durations to plan with; none: the trace's own means
  std::size_t limit = 10;            ///< cells to print
  bool json = false;
};

/// Errors: UsageFile for a file that cannot be read, a trace that was cut off or is of another
/// schedule; ScheduleParse; ScheduleInvalid for a plan that breaks a rule.
void compare_files(const CompareOptions& options, std::ostream& out);

}  // namespace stagecraft::tools
