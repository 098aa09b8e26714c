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
/// STP-4: a program that replaces a worker renews its certificate, before the next one may join.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

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

/// StepGuest is a worker's process in the folder.
class StepGuest {
 public:
  /// `worker`: its name, as in its certificate. `patience`: longest wait for the folder.
  StepGuest(std::string folder, std::string worker, std::chrono::seconds patience)
      : folder_(std::move(folder)), worker_(std::move(worker)), patience_(patience) {}

  /// Waits for the address at which the program listens, and returns it as HOST:PORT. Returns
  /// nothing if the program has ended (STP-1). After the folder, the address may take an hour: a
  /// program may take long to load.
  /// Errors: ClusterTimeout.
  [[nodiscard]] std::optional<std::string> await_driver();

  /// Returns a text that changes when the program calls for another worker in the place of this
  /// one (STP-4). Requires: await_driver() has returned an address.
  [[nodiscard]] std::string call() const;

  /// Returns whether the program has ended. Requires: await_driver() has returned an address.
  [[nodiscard]] bool is_over() const;

  [[nodiscard]] const std::string& worker() const { return worker_; }
  /// Returns the folder of its credentials.
  [[nodiscard]] std::string credentials() const;

 private:
  const std::string folder_, worker_;
  const std::chrono::seconds patience_;
  bool has_been_there_ = false;
};

}  // namespace stagecraft::tools
