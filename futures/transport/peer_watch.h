/// PeerWatch: whether what goes to one peer gets there, by what ZeroMQ tells of its connection.
/// Owned by the loop of a DataPort.
///
///   admitted -> connected -> cut        what was on its way may be lost, and the peer may not know
///      `-> never connected              by the time for which a peer may be silent
///
/// PWT-1: a peer to which nothing was given is not told of: nothing was lost.
/// PWT-2: a peer is told of once.
/// PWT-3: of a cut is told a moment later: the connections of a process that is ending are cut a
///        little before it has ended, and then its end is what there is to tell.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace stagecraft {

class PeerWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Sets up `socket`, which is not connected yet and outlives this, so that it gives a connection
  /// up over which nothing gets through for `silence`. `number` is unique in the context.
  /// Context and socket are ZeroMQ's.
  PeerWatch(void* context, void* socket, std::uint64_t number, std::chrono::milliseconds silence);
  ~PeerWatch();
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  /// Why the peer is not reached, when that is known first. `used`: something was sent to it or
  /// waits to be.
  [[nodiscard]] std::optional<std::string> look(Time now, bool used);

 private:
  void take_events(Time now, bool used);

  const std::chrono::milliseconds silence_;
  void* const socket_;
  void* const events_;                                              ///< a socket of its own
  std::optional<Time> without_ = std::chrono::steady_clock::now();  ///< a connection, since then
  std::optional<Time> cut_;
  bool told_ = false;
};

}  // namespace stagecraft
