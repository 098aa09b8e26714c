/// Reads and writes Piper's directives, the JSON file that configures a training run of Piper.
///
///     [{"op": "split", "filter": {}, "dim_name": "MB", "num_microbatches": 2},
///      {"op": "place", "filter": {"PP": 0}, "devices": [0]},
///      {"op": "order", "filters": [[{"PP": 0, "MB": 0, "PASS": "F"}], ...]}, ...]
///
/// Follows uw-syfi/piper at 77062e8 (2026, src/directives.py). A group of an order directive is a
/// cell: one filter is a task, several are an overlap group. PASS F is F, B is B, BI is I, and BW
/// is the weight half W. PP is the stage. A row is one set of devices, in the order of their
/// numbers, as Piper counts its ranks. The file does not name the edges between stages; they are
/// the model's. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

struct PiperSchedule {
  Schedule schedule;  ///< a list
  /// True if the file says more than a schedule holds: replicate or shard directives, streams,
  /// several devices for a row.
  bool says_more = false;
};

/// Errors: ScheduleParse with line and column: for a text that is not this JSON, for devices
/// without an order (Piper chooses one) or with two, and for filters that match several tasks or
/// something other than the tasks of a stage.
[[nodiscard]] PiperSchedule parse_piper(std::string_view text);

/// Returns split, place and order directives: row r on device r. Bubbles are left out.
/// Errors: ScheduleParameter for an update, replicas, frozen stages, microbatches of different
/// sizes, a stage on several rows, and a row of one task, which no order directive can hold.
/// `graph`: of the schedule.
[[nodiscard]] std::string to_piper(const Schedule& schedule, const StageGraph& graph);

}  // namespace stagecraft
