/// PyTorch's `pipeline_order` CSV has one line per rank and one comma-separated cell per time step.
///
///     0F0,0F1,,0B0,,0B1                     compute only; blank is idle
///     0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0    compute and communication, in the order of issue
///     (0F7;7B3)OVERLAP_F_B                  an overlap group
///
/// Reading is strict: text after a cell, digits of other scripts and unknown actions are errors
/// with line, column and cell. PyTorch's own reader silently accepts some of them. The file names
/// no stage graph: it is one chain unless the caller knows better. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/formats/parts/expressible.h"
#include "stagecraft/scheduler/model/communication.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

struct PytorchSchedule {
  Schedule schedule;                      ///< an array if the file has blanks, else a list
  std::vector<CommAction> communication;  ///< for ValidateOptions, so that validate() judges it
};

/// Errors: ScheduleParse with line, column and cell.
[[nodiscard]] PytorchSchedule parse_pytorch_csv(std::string_view text);

/// Describes what the writers can express. The caller checks the stage graph.
inline constexpr formats::FormatWords kPytorchWords{
    .name = "PyTorch's CSV",
    .groups = formats::GroupWords::ForwardWithBackward,
    .updates = false,
    .sizes = false};

/// Errors: ScheduleParameter for anything that the format cannot express: an update, a group other
/// than one F with one B, sizes of microbatches.
[[nodiscard]] std::string to_pytorch_csv(const Schedule& schedule);

/// Returns the list with its communication, in an order that runs on one stream per rank.
/// Parameters are gathered first. Each value is sent when it has been made, and its receive is
/// issued at that moment. After a stage's last backward its gradients are reduced and its
/// parameters released. `graph`: of the schedule.
/// Errors: ScheduleParameter as above, and for a stage with several producers or consumers;
/// ScheduleInvalid if the rows wait for each other for ever.
[[nodiscard]] std::string to_pytorch_comms_csv(const Schedule& schedule, const StageGraph& graph);

}  // namespace stagecraft
