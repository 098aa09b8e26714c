/// started_worker holds the parts of a program that starts a worker, which ways that start workers
/// share: its arguments, the destination of its output, and the driver's notes there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/actors/launch/ways/spawn_options.h"
#include "stagecraft/actors/launch/worker/worker_program.h"
#include "stagecraft/base/ids.h"

namespace stagecraft {

/// Returns the arguments of `program` for a worker that joins in this way.
[[nodiscard]] std::vector<std::string> joining_words(const WorkerProgram& program,
                                                     const WorkerProcessOptions& join);

/// Returns the destination of the lines of the worker that joins in this way: standard error, after
/// its ranks and its host, and its file in the options' `log_dir`. `host`: empty for this host.
/// Errors: those of WorkerOutput.
[[nodiscard]] std::function<void(std::string_view line)> output_of_worker(
    const SpawnOptions& options, const WorkerProcessOptions& join, const std::string& host);

/// Adds a line of the driver to the file of a place's worker in the options' `log_dir`, if there is
/// one, after the time: "2026-11-23 02:41:07 UTC driver: rank 2 ...". Makes the folder. Does
/// nothing if the file cannot be written; for a worker that this process starts, output_of_worker
/// reports that.
void note_in_log(const SpawnOptions& options,
                 int place,
                 std::int64_t incarnation,
                 const std::string& what);

/// Returns the file of a rank's worker in the options' `log_dir`: "DIR/rank-2.log", and
/// "DIR/rank-2-incarnation-1.log" for the one that has replaced it. Empty if no logs are kept, or
/// if the rank is a thread of this process.
[[nodiscard]] std::string log_of(const SpawnOptions& options, Rank rank, std::int64_t incarnation);

}  // namespace stagecraft
