/// StepFolder is the meeting place of the processes of a batch system's step, in a folder that all
/// its hosts see.
///
///     stagecraft-4711.0/
///       address        the address of the program, once it listens (SpawnOptions::meeting_place)
///       credentials/   those of its workers
///       worker-0 ...   one file per worker that has been here
///
/// Process 0 makes it, private, before all else, and removes it when its program has ended.
/// STP-1: a process that was in the folder and finds it gone knows that the program has ended.
/// STP-2: the folder stays until all processes have been there, or until the step is told to end,
///        so that every process can know.
/// STP-3: credentials are removed first: if a kill cuts the wait short, none are left.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace stagecraft::tools {

/// Checks the place. Errors: UsageFile if no folder can be made in `place`.
void check_meeting_place(const std::string& place);

class StepFolder {
 public:
  /// `patience`: longest wait, from now on, until all workers have been there.
  /// Errors: UsageFile if it cannot be made, or exists already.
  StepFolder(std::string path, int workers, std::chrono::seconds patience);
  ~StepFolder();
  StepFolder(const StepFolder&) = delete;
  StepFolder& operator=(const StepFolder&) = delete;

 private:
  [[nodiscard]] bool all_have_been_here() const;

  const std::string path_;
  const int workers_;
  const std::chrono::steady_clock::time_point deadline_;
};

/// Waits for the address at which the program listens, and returns it as HOST:PORT. Returns nothing
/// if the program has ended (STP-1). `patience`: longest wait for the folder; after that, a program
/// may take an hour to load.
/// Errors: ClusterTimeout.
[[nodiscard]] std::optional<std::string> await_driver(const std::string& folder,
                                                      const std::string& worker,
                                                      std::chrono::seconds patience);

}  // namespace stagecraft::tools
