/// PlaceText makes texts for people about the places of a fleet: their ranks and hosts, the
/// processes there, and how they ended.
///
/// A fleet makes it, for its errors and for the line about missing workers. Pure; any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stagecraft/actors/launch/fleet/place.h"
#include "stagecraft/actors/launch/ways/spawn_options.h"
#include "stagecraft/actors/launch/ways/worker_way.h"

namespace stagecraft {

class PlaceText {
 public:
  /// Views both arguments.
  PlaceText(const SpawnOptions& options, const WorkerWay& way) : options_(options), way_(way) {}

  /// Returns "3 of 4 workers; missing rank 2 on node-c". `awaited`: the number of workers to come.
  [[nodiscard]] std::string missing(std::size_t awaited, const std::vector<int>& places) const;

  /// Returns "process 4711", "process 4711 on node-b"; "of rank 2 on node-b" while the process is
  /// unknown. `place`: the number of `there`.
  [[nodiscard]] std::string process(int place, const Place& there) const;

  /// Returns the id of the place's process on its host; 0 while it is unknown.
  [[nodiscard]] std::int64_t process_id(const Place& there) const;

  /// Returns how the worker of a place ended, given how its child process ended
  /// (ChildProcess::end): "was killed by signal 9 (Killed)".
  [[nodiscard]] std::string ended(int place, const std::string& how) const;

  /// Returns the cause of the end of a place's worker: "process 4711 was killed by signal 9
  /// (Killed)". `standstill`: the time for which this process itself did not run just before.
  /// Requires: there.end().
  [[nodiscard]] std::string cause(int place,
                                  const Place& there,
                                  std::chrono::milliseconds standstill) const;

  /// Describes workers that have not joined in time: `missing`, and how to help. `join`: as in
  /// WorkerWay::late_advice.
  [[nodiscard]] std::string late(const std::string& missing,
                                 const WorkerProcessOptions& join) const;

 private:
  [[nodiscard]] std::string silence(const std::string& process,
                                    std::chrono::milliseconds standstill) const;

  const SpawnOptions& options_;
  const WorkerWay& way_;
};

}  // namespace stagecraft
