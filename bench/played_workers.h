/// PlayedWorkers: worker processes as far as a driver can tell: many to a process of this program,
/// each with an actor system, a connection and a greeting of its own. They have no models and no
/// data ports, and answer every order at once.
///
/// They end with the object, or with the process that made it, however that ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stagecraft::bench {

class PlayedWorkers {
 public:
  /// Started by fork(). Requires: no thread was made in this process yet.
  /// Errors: std::runtime_error where the system has no process or socket left.
  explicit PlayedWorkers(int workers);
  ~PlayedWorkers();  ///< waits until they have ended
  PlayedWorkers(const PlayedWorkers&) = delete;
  PlayedWorkers& operator=(const PlayedWorkers&) = delete;

  /// Has them get ready to join, with the credentials of the first `members` workers in this
  /// folder, and waits until they are. Errors: std::runtime_error when one has ended.
  void prepare(const std::string& credentials, int members) const;
  /// They join at a port of loopback.
  void join(std::uint16_t port) const;

  /// Processes that play them, for each of which this one has an open file.
  [[nodiscard]] int processes() const { return static_cast<int>(processes_.size()); }

 private:
  std::vector<pid_t> processes_;
  std::vector<int> orders_;
};

/// CAF tells no more than 256 actor systems of one process apart.
inline constexpr int kPlayedByOne = 64;

}  // namespace stagecraft::bench
