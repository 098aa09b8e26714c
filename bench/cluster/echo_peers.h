/// EchoPeers are processes that answer every message at once, over the same kind of sockets as a
/// cluster's control plane. They measure the cost of a message between processes without any work.
///
/// The peers run this program again. They end when the object or this process ends.
#pragma once

#include <sys/types.h>

#include <memory>
#include <vector>

namespace stagecraft::bench {

class EchoPeers {
 public:
  /// Errors: those of Cluster::spawn.
  explicit EchoPeers(int count);
  ~EchoPeers();
  EchoPeers(const EchoPeers&) = delete;
  EchoPeers& operator=(const EchoPeers&) = delete;

  /// Measures rounds: one actor sends every peer a step's order and, when all reports are back, the
  /// next one. Units: microseconds per round.
  [[nodiscard]] double round_of_orders(int rounds);

  /// Measures calls: a thread asks the first peer for its status and waits for the answer. Units:
  /// microseconds.
  [[nodiscard]] double call(int calls);

  [[nodiscard]] std::vector<pid_t> processes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Call this first in main(). It does not return if the program was started as an echo peer.
void serve_if_echo_peer(int argc, char** argv);

}  // namespace stagecraft::bench
