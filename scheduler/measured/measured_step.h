/// MeasuredStep holds the times at which the tasks of a schedule ran in one step. It is to a run
/// what the simulator's Timeline is to a plan.
///
/// The tools make it from the ranks' records or from a trace file; Measurements reads it. A value.
/// MT-1: all times are seconds of one clock with any zero.
/// MT-2: the tasks of a row are in the order in which they ran and do not overlap.
#pragma once

#include <optional>
#include <vector>

#include "stagecraft/scheduler/model/cell.h"

namespace stagecraft {

struct TimeSpan {
  double start = 0;
  double end = 0;

  [[nodiscard]] double length() const { return end - start; }
};

/// MeasuredInput is a value that a task received from another row or from the driver.
struct MeasuredInput {
  std::optional<int> from_row;  ///< absent: from the driver
  double made = 0;              ///< when the task that made it had ended; unused for the driver
  double arrived = 0;
  double bytes = 0;
};

struct MeasuredTask {
  Task task;  ///< with the schedule's own numbers
  TimeSpan time;
  std::vector<MeasuredInput> inputs;
};

struct MeasuredRow {
  std::vector<MeasuredTask> tasks;
  std::vector<TimeSpan> votes;    ///< includes the sums over replicas before the vote
  std::vector<TimeSpan> updates;  ///< of each stage
};

struct MeasuredStep {
  std::vector<MeasuredRow> rows;
  TimeSpan time;  ///< from the first instruction of any row to the last
};

}  // namespace stagecraft
