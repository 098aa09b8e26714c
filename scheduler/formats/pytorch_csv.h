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

#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/communication.h"
#include "stagecraft/scheduler/formats/expressible.h"
#include "stagecraft/scheduler/schedule.h"

namespace stagecraft {

struct PytorchSchedule {
  Schedule schedule;                      ///< an array when the file has blanks, else a list
  std::vector<CommAction> communication;  ///< for ValidateOptions, which judges it
};

/// Errors: ScheduleParse with line, column and cell.
[[nodiscard]] PytorchSchedule parse_pytorch_csv(std::string_view text);

/// What the writers have words for. The stage graph is the affair of whoever calls them.
inline constexpr formats::FormatWords kPytorchWords{
    .name = "PyTorch's CSV",
    .groups = formats::GroupWords::ForwardWithBackward,
    .updates = false,
    .sizes = false};

/// Errors: ScheduleParameter for what this format has no word for: an update, a group that is not
/// one F with one B, sizes of microbatches.
[[nodiscard]] std::string to_pytorch_csv(const Schedule& schedule);

/// Returns the list with its communication in an order that runs on one stream per rank: parameters
/// gathered first, each value sent once it is made and its receive issued at that moment, gradients
/// reduced and parameters released after a stage's last backward. `graph`: of the schedule.
/// Errors: ScheduleParameter as above, and for a stage with several producers or consumers;
/// ScheduleInvalid when the rows wait for each other for ever.
[[nodiscard]] std::string to_pytorch_comms_csv(const Schedule& schedule, const StageGraph& graph);

}  // namespace stagecraft
