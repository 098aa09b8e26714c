/// jaxpp reads and writes the arrays of JaxPP, as print(schedule.tasks(microbatches)) shows them.
///
///     [[Task(stage_id=0, mubatch_idx=0, fwd_or_bwd=TaskType.FWD, latency=1), None, ...],
///      [None, Task(stage_id=1, ...), ...]]
///
/// Written for JaxPP 0.9.2 (jaxpp/schedules.py: Task, FusedTask, ScheduleTasks). Read from 0.5.1
/// on, where Task has no latency. FWD is F, BWD is B, BWD_I is I, BWD_W is W, None is a bubble. A
/// FusedTask of I and W of one microbatch is B. A FusedTask of several independent tasks is an
/// overlap group; any other FusedTask is read as its tasks in order, which makes the schedule a
/// list. The file names no stage graph. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "stagecraft/scheduler/formats/parts/expressible.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

inline constexpr formats::FormatWords kJaxppWords{.name = "JaxPP's array",
                                                  .graph = formats::GraphWords::Chain,
                                                  .groups = formats::GroupWords::Independent,
                                                  .updates = false};

/// Returns whether the rows are a list of Python that holds a Task.
[[nodiscard]] bool looks_like_jaxpp(std::string_view rows);

/// Returns an array if the file has None and no task had to be unfolded; otherwise a list.
/// Errors: ScheduleParse with line and column.
[[nodiscard]] Schedule parse_jaxpp(std::string_view text);

/// Returns text that Python evaluates to JaxPP's ScheduleTasks, with Task and FusedTask of
/// jaxpp.schedules and TaskType of jaxpp.types. If a schedule splits some backwards, each whole
/// backward is written as a FusedTask of both halves, because JaxPP compiles a model either for
/// halves or for wholes.
/// Requires: kJaxppWords express the schedule.
[[nodiscard]] std::string to_jaxpp(const Schedule& schedule);

}  // namespace stagecraft
