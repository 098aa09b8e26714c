/// ScheduleFormat is a file format's line in the registry. It says how files of the format are
/// named, recognized, read and written, and which schedules they can hold.
///
/// registry.cc holds one for each format. The command `schedule` and the conformance suite know
/// formats by it alone. A value; any thread may use it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/formats/parts/expressible.h"
#include "stagecraft/scheduler/model/communication.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// ReadSchedule is the content of a schedule file.
struct ReadSchedule {
  Schedule schedule;
  /// The communication, for ValidateOptions, so that validate() judges it; empty if the file lists
  /// none.
  std::vector<CommAction> communication = {};
  std::string left_out =
      {};  ///< the content of the file that a schedule cannot hold, e.g. "shard directives"
};

struct ScheduleFormat {
  std::string_view name;       ///< the word for it on the command line
  std::string_view summary;    ///< one line for help texts and documents
  formats::FormatWords words;  ///< the schedules that it can hold
  /// Reads a file. Errors: ScheduleParse with line and column.
  ReadSchedule (*read)(std::string_view text) = nullptr;
  /// Returns a text that `read` takes. It is null if the format is only read. write_schedule()
  /// calls it, after it has made sure that `words` express the schedule and that the schedule has
  /// the `form`.
  std::string (*write)(const Schedule& schedule, const StageGraph& graph) = nullptr;
  /// Returns whether a file has this format. `rows`: its text from its first row on, without
  /// comments and headers before it. Null if another format recognizes and reads these files.
  bool (*recognizes)(std::string_view rows) = nullptr;
  std::string_view ending;             ///< ".csv": of files that no format recognizes by their rows
  std::optional<Schedule::Form> form;  ///< the form that schedules are converted to; absent: any
  bool comments = false;               ///< `#` begins a comment
  bool columns_are_times = true;       ///< false: some files list rows without meaning the columns
  bool communicates = false;           ///< `write` lays out communication
};

}  // namespace stagecraft
