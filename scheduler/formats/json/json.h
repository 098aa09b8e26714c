/// json.h defines the JSON form of a schedule: the content of the text form, for programs.
///
///     {"form": "array", "microbatches": 1, "edges": [[0, 1]],
///      "rows": [[[0, 0, "F"], null, [0, 0, "B"]],
///               [null, [1, 0, "F"], [1, 0, "B"]]]}
///
/// A cell is null, a task [stage, microbatch, kind], or a list of tasks: an overlap group. "form",
/// "devices", "stages", "microbatches", "edges", "replicas", "frozen" (a list of stages), "sizes"
/// (of microbatches, by stage) and "place" (the ranks of each row) are optional. A cell of another
/// shape and an unknown kind are no errors here: they break rules V03 and V06. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "stagecraft/scheduler/formats/parts/expressible.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

inline constexpr formats::FormatWords kJsonWords{.name = "JSON", .places = true};

/// Returns whether the rows begin like a JSON object or list.
[[nodiscard]] bool looks_like_json(std::string_view rows);

/// Reads the schedule.
/// Errors: ScheduleParse with line and column: for the place where a text ceases to be JSON; or
/// otherwise for all unknown or ill-typed fields and numbers beyond the limits of a schedule.
[[nodiscard]] Schedule parse_json(std::string_view text);

/// Returns the schedule with one line per row; parse_json() reads it back.
[[nodiscard]] std::string to_json(const Schedule& schedule);

}  // namespace stagecraft
