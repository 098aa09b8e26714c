/// run_events makes the events that only the record of a run folder has; recorded_progress adds
/// those that the run also prints.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "stagecraft/actors/launch/worker_place.h"
#include "stagecraft/base/error.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"
#include "stagecraft/tools/run_record/run_folder.h"
#include "stagecraft/tools/train/job/job.h"
#include "stagecraft/tools/train/options/options.h"
#include "stagecraft/tools/train/record/worker_logs.h"

namespace stagecraft::tools {

/// Returns the event `start`: the command with its folder and environment, the build, this host
/// with its hardware, this process, and the places of the run's files.
[[nodiscard]] nlohmann::ordered_json start_event(const TrainOptions& options,
                                                 const std::vector<std::string>& arguments);

/// Returns the event `complete`, of a start that finds all steps made.
[[nodiscard]] nlohmann::ordered_json complete_event(std::int64_t step, std::int64_t steps);

/// Returns the event `began`: the steps that were made before, and where each rank runs.
[[nodiscard]] nlohmann::ordered_json began_event(const TrainJob& job,
                                                 std::int64_t steps_made,
                                                 const std::vector<WorkerPlace>& workers,
                                                 const WorkerLogs& logs);

/// Returns the event `failed_at`: the step in progress or the next, and the log of the rank that
/// the failure is about.
[[nodiscard]] nlohmann::ordered_json failed_at_event(const Error& failure,
                                                     std::int64_t step,
                                                     const std::vector<WorkerPlace>& workers,
                                                     const WorkerLogs& logs);

/// Runs the command, and adds the event `end`: its exit status, and the error that ends it, which
/// is thrown on. Returns the exit status, which is 2 if the record has gaps and all else was good.
[[nodiscard]] ExitCode with_end(RunFolder& folder, const std::function<ExitCode()>& command);

/// Writes the strategy of the run to the folder, or its schedule if no strategy can say it.
/// Errors: UsageFile if it cannot be written.
void write_strategy(const TrainJob& job, const RunPlaces& places, Console& console);

}  // namespace stagecraft::tools
