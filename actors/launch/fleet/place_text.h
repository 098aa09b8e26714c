/// Texts for people about a fleet's places: their ranks and host, the process there, and how it
/// ended.
///
/// Used by the fleet for its errors and for the line about missing workers. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stagecraft/actors/cluster/cluster.h"

namespace stagecraft {

/// Returns whether workers may run on other hosts.
[[nodiscard]] bool is_elsewhere(const SpawnOptions& options);

/// Returns "rank 2", "ranks 4-7".
[[nodiscard]] std::string ranks_text(const SpawnOptions& options, int place);

/// Returns "3 of 4 workers; missing rank 2 on node-c". `awaited`: the number of workers to come.
[[nodiscard]] std::string missing_text(const SpawnOptions& options,
                                       std::size_t awaited,
                                       const std::vector<int>& missing);

/// Returns "process 4711", "process 4711 on node-b"; "of rank 2 on node-b" while `process` is 0,
/// unknown. `host_name`: as the worker reports it; empty if unknown.
[[nodiscard]] std::string process_text(const SpawnOptions& options,
                                       int place,
                                       std::int64_t process,
                                       const std::string& host_name);

/// Returns how the worker of a place ended, given how its child process ended (ChildProcess::end).
[[nodiscard]] std::string end_text(const SpawnOptions& options, int place, const std::string& end);

/// Describes a worker whose connection has ended, but whose process is not known to have ended.
/// `standstill`: for how long this process itself did not run just before.
[[nodiscard]] std::string silence_text(const SpawnOptions& options,
                                       const std::string& process,
                                       std::chrono::milliseconds standstill);

/// Describes workers that have not joined in time: `missing`, and how to help. `address`, `port`:
/// where they could have joined.
[[nodiscard]] std::string late_text(const SpawnOptions& options,
                                    const std::string& missing,
                                    const std::string& address,
                                    std::uint16_t port);

}  // namespace stagecraft
