/// TracedRun holds what a trace says about a run, after every step was found to follow its
/// schedule. The commands of `stagecraft trace` read it. A value.
#pragma once

#include <string>

#include "stagecraft/scheduler/measured/measurements.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/tools/trace/trace_file.h"

namespace stagecraft::tools {

struct TracedRun {
  Schedule schedule;
  TraceHeader header;
  Measurements measured;  ///< of at least one step

  /// Returns the costs that the run was predicted with, else those that it had.
  [[nodiscard]] Costs costs() const;
};

/// Reads a trace of a run of the schedule. `name`: of the schedule, for messages.
/// Errors: UsageFile for a file that cannot be read, was cut off, holds no step or belongs to
///         another schedule.
[[nodiscard]] TracedRun read_run(const std::string& path,
                                 const Schedule& schedule,
                                 const std::string& name);

/// Does the same with the schedule in the trace.
/// Errors: UsageFile also if it has none.
[[nodiscard]] TracedRun read_run(const std::string& path);

}  // namespace stagecraft::tools
