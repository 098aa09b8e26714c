/// RunDiagnosis says what ended a run of `train --run-dir`, from its folder alone.
///
///     diagnose_run(folder) --> RunDiagnosis --> text or JSON (run_report.h)
///
/// It judges the last start. Earlier ones show in their number and in the steps that they made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/actors/trainer/checkpoint_folder.h"

namespace stagecraft::tools {

enum class RunState : std::uint8_t {
  Finished,    ///< all its steps are made
  Running,     ///< its process lives
  ToldToEnd,   ///< by a signal or a watcher; it ended in order
  Incomplete,  ///< it made its steps, but could not write or compare all that it should
  Failed,      ///< with an error
  Killed,      ///< its process ended without a word
};

/// RunError is the error that ended a run.
struct RunError {
  std::string message;
  std::string code;  ///< errors.md explains it; empty if it is not one of ours
  std::optional<std::int64_t> rank, step;
};

/// RunRestart is one time that the run was healed.
struct RunRestart {
  std::int64_t step = 0;
  std::vector<std::string> failures;  ///< the first began it
};

struct RunDiagnosis {
  std::string folder;
  RunState state = RunState::Killed;
  std::string how;                            ///< one line for people: the state, and why
  std::string started, ended;                 ///< times of the last start; empty: not in the record
  std::string build;                          ///< the versions of its parts
  int starts = 0;                             ///< in the record
  std::optional<std::int64_t> made;           ///< the last step that is known to be made
  std::optional<std::int64_t> steps;          ///< where the run ends
  std::optional<RunError> error;              ///< of a run that failed
  std::vector<RunRestart> restarts;           ///< of the last start
  std::string log;                            ///< of the worker that was lost last; empty: none
  std::vector<std::string> last_lines;        ///< of that log
  std::optional<FoundCheckpoint> checkpoint;  ///< the newest whole one
  std::string go_on;                          ///< the command that continues the run
  std::vector<std::string> notes;             ///< what else is remarkable
};

/// Reads the folder. Cost: reads the newest checkpoint once.
/// Errors: UsageFile if it is no run folder, or if its record names no start.
[[nodiscard]] RunDiagnosis diagnose_run(const std::string& folder);

/// Returns whether the run needs somebody.
[[nodiscard]] bool is_trouble(RunState state);

}  // namespace stagecraft::tools
