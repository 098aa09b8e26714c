/// StepFolder: where the processes of a step of Slurm meet, in a folder that all its hosts see.
///
///     stagecraft-4711.0/
///       address        where the program listens, once it does (SpawnOptions::meeting_place)
///       credentials/   by which its workers are known
///       worker-0 ...   who has been here
///
/// Process 0 makes it, private, before all else, and removes it when its program has ended.
/// STP-1: who has been there and finds it gone knows that the program has ended.
/// STP-2: so that everybody can know, it is there until all have been, or the step was told to end.
/// STP-3: credentials go first: where the wait is cut short by a kill, none are left.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace stagecraft::tools {

/// Errors: UsageFile where no folder can be made in `place`.
void check_meeting_place(const std::string& place);

class StepFolder {
 public:
  /// `patience`: longest wait for the workers to have been there, from now on.
  /// Errors: UsageFile where it cannot be made, or is there already.
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

/// Where the program listens, as HOST:PORT; waits for it. Nothing: it has ended (STP-1).
/// `patience`: longest wait for the folder; what a program has to load first may take an hour.
/// Errors: ClusterTimeout.
[[nodiscard]] std::optional<std::string> await_driver(const std::string& folder,
                                                      const std::string& worker,
                                                      std::chrono::seconds patience);

}  // namespace stagecraft::tools
