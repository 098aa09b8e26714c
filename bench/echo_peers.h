/// EchoPeers: processes that answer every message at once, over the very sockets of a cluster's
/// control plane. What a message between processes costs when nothing is done with it.
///
/// The peers are this program again; they end when the object, or this process, does.
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

  /// One actor sends every peer a step's order and, when all reports are back, the next.
  /// Units: microseconds a round.
  [[nodiscard]] double round_of_orders(int rounds);

  /// A thread asks the first peer for its status and waits for the answer. Units: microseconds.
  [[nodiscard]] double call(int calls);

  [[nodiscard]] std::vector<pid_t> processes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// To be called first in main(): does not return where the program was started as such a peer.
void serve_if_echo_peer(int argc, char** argv);

}  // namespace stagecraft::bench
