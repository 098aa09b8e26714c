/// PeerWatch detects from ZeroMQ's events whether messages reach one peer. The loop of a DataPort
/// owns it.
///
///   admitted -> connected -> cut        messages on the way may be lost, and the peer may not know
///      `-> never connected              within the time for which a peer may be silent
///
/// PWT-1: a peer to which nothing was sent is not reported: nothing was lost.
/// PWT-2: a peer is reported once.
/// PWT-3: a cut is reported a moment later. If a process ends, its connections are cut shortly
///        before, and its end is the cause to report.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace stagecraft {

class PeerWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Sets up `socket` so that it gives up a connection over which nothing gets through for
  /// `silence`. `socket` is not connected yet and outlives this object. `number` is unique in the
  /// context. ZeroMQ owns context and socket.
  PeerWatch(void* context, void* socket, std::uint64_t number, std::chrono::milliseconds silence);
  ~PeerWatch();
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  /// Returns why the peer is out of reach, at the first look that detects it. `used`: something was
  /// sent to the peer or waits to be sent.
  [[nodiscard]] std::optional<std::string> look(Time now, bool used);

 private:
  void take_events(Time now, bool used);

  const std::chrono::milliseconds silence_;
  void* const socket_;
  void* const events_;                                              ///< a socket of its own
  std::optional<Time> without_ = std::chrono::steady_clock::now();  ///< no connection since then
  std::optional<Time> cut_;
  bool reported_ = false;
};

}  // namespace stagecraft
