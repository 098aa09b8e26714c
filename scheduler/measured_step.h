/// MeasuredStep: when the tasks of a schedule really ran in one step. What the simulator's Timeline
/// is to a plan, this is to a run.
///
/// Made by the tools from what the ranks recorded or from a trace file; read by Measurements. A
/// value.
/// MT-1: all times are seconds of one clock; where its zero is does not matter.
/// MT-2: the tasks of a row are in the order in which they ran and do not overlap.
#pragma once

#include <optional>
#include <vector>

#include "stagecraft/scheduler/cell.h"

namespace stagecraft {

struct TimeSpan {
  double start = 0;
  double end = 0;

  [[nodiscard]] double length() const { return end - start; }
};

/// Something a task received from elsewhere.
struct MeasuredInput {
  std::optional<int> from_row;  ///< absent: from the driver
  double made = 0;              ///< when the task that made it had ended; of no use from the driver
  double arrived = 0;
  double bytes = 0;
};

struct MeasuredTask {
  Task task;  ///< by the schedule's own numbers
  TimeSpan time;
  std::vector<MeasuredInput> inputs;
};

struct MeasuredRow {
  std::vector<MeasuredTask> tasks;
  std::vector<TimeSpan> votes;    ///< also the sums over replicas before
  std::vector<TimeSpan> updates;  ///< of each stage
};

struct MeasuredStep {
  std::vector<MeasuredRow> rows;
  TimeSpan time;  ///< from the first instruction of any row to the last
};

}  // namespace stagecraft
