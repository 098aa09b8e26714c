/// The registry lists the file formats of schedules. The command `schedule` reads and writes all of
/// them.
///
/// A new format is one source file with its header, one line in the table of registry.cc, one test
/// of its own and one line of docs/schedules.md. The smallest format to copy is zero_bubble.cc.
/// Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "stagecraft/scheduler/formats/parts/schedule_format.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// Returns all formats, the general ones first. The first one is the default.
[[nodiscard]] std::span<const ScheduleFormat> schedule_formats();

/// Returns the format. Errors: UsageArgument for an unknown name, with the nearest known one.
[[nodiscard]] const ScheduleFormat& find_format(std::string_view name);

/// Returns the format of a file: the last of the table that recognizes its rows, or else the one
/// with the ending of its path, or else the default. `path` may be empty.
[[nodiscard]] const ScheduleFormat& detect_format(std::string_view text, std::string_view path);

/// Returns the schedule as a file of that format, in the format's form.
/// Errors: UsageArgument for a format that is only read; ScheduleParameter for a schedule that the
/// format cannot express, with the first such cell, and for an array that is too large;
/// ScheduleInvalid for an array or communication of rows that wait for each other forever.
[[nodiscard]] std::string write_schedule(const Schedule& schedule,
                                         const StageGraph& graph,
                                         const ScheduleFormat& format);

}  // namespace stagecraft
