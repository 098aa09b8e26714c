/// worker_program finds the program of a worker process, and writes and reads its arguments.
///
/// The launcher of processes uses it and, on the other side, worker_main().
#pragma once

#include <string>
#include <vector>

#include "stagecraft/actors/launch/worker/worker_process.h"

namespace stagecraft {

struct WorkerProgram {
  std::string path;
  std::vector<std::string> arguments;  ///< before those of worker_arguments()
};

/// The argument by which a user's program finds out that it was started as a worker.
inline constexpr const char* kWorkerWord = "--stagecraft-worker";

/// Returns the program. `wished`: a path. Empty for the generic worker: the one that
/// STAGECRAFT_WORKER names, otherwise `stagecraft` beside this program or one folder above, or in
/// the bin folder of an installed copy. "/proc/self/exe" is this program, under its own name. A
/// program other than `stagecraft` must call worker_main().
/// Errors: UsageFile, with every place that was searched.
[[nodiscard]] WorkerProgram find_worker_program(const std::string& wished);

/// Returns the program at a path, which may be another host's. Does not search for it.
[[nodiscard]] WorkerProgram worker_program_at(const std::string& path);

/// Returns the options of `stagecraft worker` as arguments; parse_worker_arguments reads them back.
[[nodiscard]] std::vector<std::string> worker_arguments(const WorkerProcessOptions& options);
/// Reads the arguments. Errors: UsageArgument, naming the option, the expected value and the found
/// one.
[[nodiscard]] WorkerProcessOptions parse_worker_arguments(
    const std::vector<std::string>& arguments);

}  // namespace stagecraft
