/// What people are told of a fleet's places: whose ranks they are, on which host, which process
/// stands there, and how it ended.
///
/// Used by the fleet for its errors and for the line of who is missing. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stagecraft/actors/cluster.h"

namespace stagecraft {

/// Whether workers may be on other hosts.
[[nodiscard]] bool is_elsewhere(const SpawnOptions& options);

/// "rank 2", "ranks 4-7".
[[nodiscard]] std::string ranks_text(const SpawnOptions& options, int place);

/// "3 of 4 workers; missing rank 2 on node-c". `awaited`: how many there are to be.
[[nodiscard]] std::string missing_text(const SpawnOptions& options,
                                       std::size_t awaited,
                                       const std::vector<int>& missing);

/// "process 4711", "process 4711 on node-b"; "of rank 2 on node-b" while `process` is 0, not known.
/// `host_name`: as the worker itself says; empty: not known.
[[nodiscard]] std::string process_text(const SpawnOptions& options,
                                       int place,
                                       std::int64_t process,
                                       const std::string& host_name);

/// How the worker of a place ended, from how its child process did (ChildProcess::end).
[[nodiscard]] std::string end_text(const SpawnOptions& options, int place, const std::string& end);

/// Of one whose connection has ended without that its process is known to have. `standstill`: for
/// how long this process has not run itself, just before.
[[nodiscard]] std::string silence_text(const SpawnOptions& options,
                                       const std::string& process,
                                       std::chrono::milliseconds standstill);

/// Of workers that have not joined in time: `missing`, and what can be done. `address` and
/// `port`: where they could have.
[[nodiscard]] std::string late_text(const SpawnOptions& options,
                                    const std::string& missing,
                                    const std::string& address,
                                    std::uint16_t port);

}  // namespace stagecraft
