/// PlayedWorkers act as worker processes toward a driver. One process of this program plays many
/// of them, each with an actor system, a connection and a greeting of its own. They have no models
/// and no data ports, and answer every order at once.
///
/// They end with the object, or with the process that made it, for any end of it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stagecraft::bench {

class PlayedWorkers {
 public:
  /// Starts the processes by fork(). Requires: no thread was made in this process yet.
  /// Errors: std::runtime_error if the system has no process or socket left.
  explicit PlayedWorkers(int workers);
  ~PlayedWorkers();  ///< waits until they have ended
  PlayedWorkers(const PlayedWorkers&) = delete;
  PlayedWorkers& operator=(const PlayedWorkers&) = delete;

  /// Makes them ready to join, each with its credentials in this folder, and waits until they are.
  /// Errors: std::runtime_error if one has ended.
  void prepare(const std::string& credentials) const;
  /// Makes them join at a port of loopback.
  void join(std::uint16_t port) const;

  /// Returns the number of processes that play them. For each one this process has an open file.
  [[nodiscard]] int processes() const { return static_cast<int>(processes_.size()); }

 private:
  std::vector<pid_t> processes_;
  std::vector<int> orders_;
};

/// The most workers that one process plays. CAF distinguishes at most 256 actor systems of one
/// process.
inline constexpr int kPlayedByOne = 64;

}  // namespace stagecraft::bench
