/// RunRecord is the record of a folder of `train --run-dir`, a file of JSON lines. The first says
/// what the run is, each start adds a line, and what happens adds further ones.
///
///     {"event":"run","time":"2026-11-23T02:41:07Z","what":{"--model":"llama"}}
///     {"event":"start","time":"2026-11-23T02:41:07Z","command":["--run-dir","runs/a"],"host":"a"}
///     {"event":"began","time":"2026-11-23T02:41:09Z","step":0,"steps":50,"workers":[]}
///     {"event":"end","time":"2026-11-23T02:51:40Z","exit_status":0}
///
/// RunFolder writes it, `stagecraft doctor --run` reads it. A start without an `end` is running, or
/// was killed.
/// REC-1: a line that is not whole, as a full disk or the end of a machine leaves it, is counted
///        and passed over; the lines around it count.
/// REC-2: the reader may get the record of a stranger. It leaves out values that are nested deeper
///        than those of any event, since each use of them would take as much of the stack, and
///        refuses a record that is larger than any run writes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace stagecraft::tools {

/// Says where a run folder keeps its parts.
struct RunPlaces {
  explicit RunPlaces(const std::string& folder);

  std::string record, checkpoints, metrics, logs, strategy, schedule;
};

/// RunIdentity says what a run trains and by which strategy: values by the names of options.
using RunIdentity = std::map<std::string, std::string>;

struct RunRecord {
  RunIdentity what;                            ///< empty: no whole line says it
  std::vector<nlohmann::ordered_json> events;  ///< objects with an `event`, in order
  int damaged = 0;                             ///< lines that are not whole
  int lines = 0;                               ///< all, also empty ones
  bool is_torn = false;                        ///< the last one has no end
};

/// Reads the record.
/// Errors: UsageFile if the folder does not exist, has no record, or cannot be read.
[[nodiscard]] RunRecord read_run_record(const std::string& folder);

/// Returns the id of the system's present run, by which its end shows.
[[nodiscard]] std::string boot_id();

/// Returns whether a process has the folder open for its run, as far as the file system tells.
[[nodiscard]] bool is_run_going_on(const std::string& folder);

}  // namespace stagecraft::tools
