/// WorkerLogs names the log of each worker of a run, and adds the driver's lines about steps.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/actors/launch/ways/spawn_options.h"
#include "stagecraft/actors/launch/worker_place.h"
#include "stagecraft/base/error.h"

namespace stagecraft::tools {

class WorkerLogs {
 public:
  WorkerLogs() = default;  ///< of a run without logs
  explicit WorkerLogs(SpawnOptions options) : options_(std::move(options)) {}

  /// Returns the file; empty if the worker has none.
  [[nodiscard]] std::string file_of(const WorkerPlace& worker) const;

  /// Adds to the log: "... driver: rank 2 step 7: TEXT", or TEXT alone if it begins with the step.
  /// `step`: the one in progress or the next.
  void note(const WorkerPlace& worker, std::int64_t step, const std::string& text) const;

  /// Notes a failure in the log of the rank that it is about. Returns the failure, which then names
  /// that log. `workers`: by rank.
  [[nodiscard]] Error with_log(const Error& failure,
                               std::int64_t step,
                               const std::vector<WorkerPlace>& workers) const;

 private:
  SpawnOptions options_;
};

}  // namespace stagecraft::tools
