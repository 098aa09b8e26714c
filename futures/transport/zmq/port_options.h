/// DataPortOptions says where a data port listens, how much it accepts, and which functions it
/// calls when it loses a peer.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "stagecraft/base/error.h"
#include "stagecraft/futures/transport/zmq/frames/frame.h"

namespace stagecraft {

struct DataPortOptions {
  /// "tcp://ADDRESS:*" or ":PORT"; "ipc://*" for a name that no other port of the host has and that
  /// leaves no file.
  std::string bind = "tcp://127.0.0.1:*";
  std::int64_t largest_tensor = std::int64_t{1} << 36U;  ///< bytes; a larger one is refused
  std::int64_t chunk_bytes = kLargestChunk;              ///< at most kLargestChunk
  /// The most memory that the port shares with each peer of its host, for tensors on their way to
  /// the peer; bytes. 0: none, and nobody may share memory with the port.
  std::int64_t shared_memory = 0;
  int io_threads = 1;  ///< ZeroMQ's threads, which encrypt
  /// Called once with the peer's key when a link has broken (DP-2), on the progress thread. Must
  /// not block.
  std::function<void(const std::string& key, const Error& why)> when_broken;
  /// The time without progress after which a peer is out of reach (DP-6); 0: no limit.
  std::chrono::milliseconds silence{0};
  /// Called once when a peer is out of reach, in the same way.
  std::function<void(const std::string& key, const Error& why)> when_cut;
  /// Called once if the progress thread cannot go on, for example without memory; the port neither
  /// sends nor receives afterwards. Called on that thread.
  std::function<void(const Error& why)> when_failed;
};

/// Checks the values. Errors: UsageArgument for a value out of range.
void require_valid(const DataPortOptions& options);

}  // namespace stagecraft
