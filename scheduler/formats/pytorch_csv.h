/// PyTorch's `pipeline_order` CSV: one line per rank, one comma-separated cell per time step.
///
///     0F0,0F1,,0B0,,0B1                     compute only; blank is idle
///     0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0    compute and communication, in the order of issue
///     (0F7;7B3)OVERLAP_F_B                  an overlap group
///
/// Read strictly: text after a cell, digits of other scripts and unknown actions are errors with
/// line, column and cell, where PyTorch's own reader takes some of them silently. The file names no
/// stage graph: one chain unless the caller knows better. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/schedule.h"

namespace stagecraft {

enum class CommKind : std::uint8_t {
  SendForward,
  RecvForward,
  SendBackward,
  RecvBackward,
  Unshard,
  Reshard,
  ReduceGrad
};

/// One communication cell: `position` compute cells of its row come before it.
struct CommAction {
  CommKind kind = CommKind::SendForward;
  StageId stage;
  Microbatch microbatch;  ///< 0 for the three that belong to a whole stage
  int row = 0;
  int position = 0;

  friend bool operator==(const CommAction&, const CommAction&) = default;
};

/// Returns "0SEND_F3" or "1UNSHARD".
[[nodiscard]] std::string to_string(const CommAction& action);

struct PytorchSchedule {
  Schedule schedule;  ///< an array when the file has blanks, else a list
  std::vector<CommAction> communication;
};

/// Errors: ScheduleParse with line, column and cell.
[[nodiscard]] PytorchSchedule parse_pytorch_csv(std::string_view text);

/// Errors: ScheduleParameter for a cell this format has no word for: an update, a group that is not
/// one F with one B.
[[nodiscard]] std::string to_pytorch_csv(const Schedule& schedule);

/// Returns the list with its communication: parameters gathered first, receives before and sends
/// after their task, gradients reduced and parameters released after a stage's last backward.
/// `graph`: of the schedule. Errors: ScheduleParameter as above, and for a stage with several
/// producers or consumers.
[[nodiscard]] std::string to_pytorch_comms_csv(const Schedule& schedule, const StageGraph& graph);

}  // namespace stagecraft
