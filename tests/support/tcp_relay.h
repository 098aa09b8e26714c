/// TcpRelay carries the connections of a port of this host, and fails as a network does: it ends
/// them, or carries nothing more while they stay open.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <thread>

namespace stagecraft::tests {

class TcpRelay {
 public:
  /// Listens at a free port, and connects each caller to port `to` of this host.
  explicit TcpRelay(std::uint16_t to);
  ~TcpRelay();
  TcpRelay(const TcpRelay&) = delete;
  TcpRelay& operator=(const TcpRelay&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// Returns how many connections it has made.
  [[nodiscard]] int connections() const { return connections_; }

  /// Ends all connections at both ends. What is on the way is lost. Later callers are connected.
  void cut();
  /// Carries nothing more until the connections are cut; they stay open.
  void hold();
  /// Does so with what callers send alone.
  void hold_callers();
  /// Returns whether it has taken bytes that it does not carry.
  [[nodiscard]] bool is_holding_bytes() const { return is_holding_bytes_; }

 private:
  struct Connection {
    int caller = -1, called = -1;
    std::thread there, back;
  };

  void accept_callers();
  /// Carries bytes one way until an end is closed; then closes the other. `holds`: of this way.
  void carry(int from, int to, const bool& holds);

  const std::uint16_t to_;
  int listening_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<int> connections_ = 0;
  std::atomic<bool> is_holding_bytes_ = false;
  std::mutex mutex_;  ///< guards what follows, which several threads use
  std::condition_variable changed_;
  bool holds_there_ = false, holds_back_ = false;
  std::list<Connection> all_;
  std::thread accepting_;  // last: it uses all other members
};

}  // namespace stagecraft::tests
