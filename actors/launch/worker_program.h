/// Which program a worker process runs, and how it is told what to do.
///
/// Used by the launcher of processes and, on the other side, by worker_main().
#pragma once

#include <string>
#include <vector>

#include "stagecraft/actors/launch/worker_process.h"

namespace stagecraft {

struct WorkerProgram {
  std::string path;
  std::vector<std::string> arguments;  ///< before those of worker_arguments()
};

/// The word by which a program of the user's finds out that it is started as a worker.
inline constexpr const char* kWorkerWord = "--stagecraft-worker";

/// `wished`: a path, empty for the generic worker: what STAGECRAFT_WORKER names, else `stagecraft`
/// beside this program or one folder above, or in the bin folder of an installed copy.
/// "/proc/self/exe" is this program, under its own name. A program other than `stagecraft` must
/// call worker_main().
/// Errors: UsageFile, with every place that was looked at.
[[nodiscard]] WorkerProgram find_worker_program(const std::string& wished);

/// A program at a path, which may be another host's: nothing is looked for.
[[nodiscard]] WorkerProgram worker_program_at(const std::string& path);

/// The options of `stagecraft worker`, and what they were.
[[nodiscard]] std::vector<std::string> worker_arguments(const WorkerProcessOptions& options);
/// Errors: UsageArgument, naming the option, what it expects and what was found.
[[nodiscard]] WorkerProcessOptions parse_worker_arguments(
    const std::vector<std::string>& arguments);

}  // namespace stagecraft
