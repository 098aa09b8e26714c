/// pytorch_csv is PyTorch's `pipeline_order` CSV: one line per rank, one comma-separated cell per
/// time step.
///
///     0F0,0F1,,0B0,,0B1                     compute only; blank is idle
///     0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0    compute and communication, in the order of issue
///     (0F7;7B3)OVERLAP_F_B                  an overlap group
///
/// Reading is strict: text after a cell, digits of other scripts and unknown actions are errors
/// with line, column and cell. PyTorch's own reader silently accepts some of them. The file names
/// no stage graph: it is one chain unless the caller gives a graph. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "stagecraft/scheduler/formats/parts/expressible.h"
#include "stagecraft/scheduler/formats/parts/schedule_format.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

inline constexpr formats::FormatWords kPytorchWords{
    .name = "PyTorch's CSV",
    .graph = formats::GraphWords::Chain,
    .groups = formats::GroupWords::ForwardWithBackward,
    .updates = false};
inline constexpr formats::FormatWords kPytorchCommsWords{
    .name = "PyTorch's CSV",
    .bubbles = false,
    .graph = formats::GraphWords::Chain,
    .groups = formats::GroupWords::ForwardWithBackward,
    .updates = false};

/// Returns whether the first row has a comma and begins no list or object.
[[nodiscard]] bool looks_like_csv(std::string_view rows);

/// Returns an array if the file has blanks and no communication; otherwise a list.
/// Errors: ScheduleParse with line, column and cell.
[[nodiscard]] ReadSchedule parse_pytorch_csv(std::string_view text);

/// Returns the tasks, without communication. Requires: kPytorchWords express the schedule.
[[nodiscard]] std::string to_pytorch_csv(const Schedule& schedule);

/// Returns the list with its communication, in an order that runs on one stream per rank.
/// Parameters are gathered first. Each value is sent when it has been made, and its receive is
/// issued at that moment. After a stage's last backward its gradients are reduced and its
/// parameters released. `graph`: of the schedule.
/// Requires: kPytorchCommsWords express the schedule; its graph may also be several chains.
/// Errors: ScheduleInvalid if the rows wait for each other forever.
[[nodiscard]] std::string to_pytorch_comms_csv(const Schedule& schedule, const StageGraph& graph);

}  // namespace stagecraft
