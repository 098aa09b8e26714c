/// zero_bubble reads and writes the lists of the zero-bubble scheduler: print(local_order) of the
/// result of its create_schedule().
///
///     [[ScheduledNode(type=F, stage=0, microbatch=0, chunk=0, layer_group_idx=0), ...],
///      [ScheduledNode(type=F, stage=1, microbatch=0, chunk=0, layer_group_idx=1), ...]]
///
/// Follows sail-sg/zero-bubble-pipeline-parallelism at 39f2c186 (May 2025,
/// megatron/core/pipeline_parallel/zerobubble/scheduler/graph.py). F is F, B the input half I, W is
/// W, and BW the whole backward B; `stage` is our row and `layer_group_idx` our stage. Only the
/// order of a row counts: start_time and completion_time are ignored. The file names no stage
/// graph. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "stagecraft/scheduler/formats/parts/expressible.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

inline constexpr formats::FormatWords kZeroBubbleWords{.name = "The zero-bubble scheduler's list",
                                                       .bubbles = false,
                                                       .graph = formats::GraphWords::Chain,
                                                       .groups = formats::GroupWords::None,
                                                       .updates = false};

/// Returns whether the rows are a list of Python that holds a ScheduledNode.
[[nodiscard]] bool looks_like_zero_bubble(std::string_view rows);

/// Returns a list.
/// Errors: ScheduleParse with line and column. Nodes that are no tasks of a schedule are errors
/// too: communication and offloading, which the scheduler's passes add to the list, recomputation,
/// and parts of sequences.
[[nodiscard]] Schedule parse_zero_bubble(std::string_view text);

/// Returns text that Python evaluates to the lists that run_schedule_passes() takes, with
/// ScheduledNode, F, B, W and BW of graph.py. Bubbles are left out.
/// Requires: kZeroBubbleWords express the schedule.
[[nodiscard]] std::string to_zero_bubble(const Schedule& schedule);

}  // namespace stagecraft
