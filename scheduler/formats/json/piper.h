/// piper reads and writes Piper's directives, the JSON file that configures a training run of
/// Piper.
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

#include "stagecraft/scheduler/formats/parts/expressible.h"
#include "stagecraft/scheduler/formats/parts/schedule_format.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

inline constexpr formats::FormatWords kPiperWords{.name = "Piper's directives",
                                                  .bubbles = false,
                                                  .graph = formats::GraphWords::Model,
                                                  .updates = false};

/// Returns whether the rows are a list of JSON objects.
[[nodiscard]] bool looks_like_piper(std::string_view rows);

/// Returns a list. ReadSchedule reports that the file says more than a schedule does if it has
/// replicate or shard directives, streams, or several devices for a row.
/// Errors: ScheduleParse with line and column: for a text that is not this JSON, for devices
/// without an order (Piper chooses one) or with two, and for filters that match several tasks or
/// something other than the tasks of a stage.
[[nodiscard]] ReadSchedule parse_piper(std::string_view text);

/// Returns split, place and order directives: row r on device r. Bubbles are left out.
/// Requires: kPiperWords express the schedule.
/// Errors: ScheduleParameter for a stage on several rows, and for a row of one task, which no order
/// directive can hold.
[[nodiscard]] std::string to_piper(const Schedule& schedule);

}  // namespace stagecraft
