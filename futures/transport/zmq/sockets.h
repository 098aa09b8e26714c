/// PortSockets makes and holds all ZeroMQ sockets of a data port, and its CURVE keys.
///
///   incoming()    all peers send to it; bound to address()
///   questions()   ZeroMQ asks here who may connect (IdentityJudge)
///   strangers()   watches the connections of incoming() that have not finished a handshake
///
/// new_connection() makes a socket for each peer that gets something; its PeerSender owns the
/// socket. The port makes and destroys PortSockets. wake() and new_connection() may be called from
/// any thread; everything else belongs to the thread of the port's loop.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "stagecraft/base/error.h"
#include "stagecraft/futures/transport/port_address.h"
#include "stagecraft/futures/transport/zmq/port_options.h"
#include "stagecraft/futures/transport/zmq/strangers.h"

namespace zmq {
class context_t;
class socket_t;
}  // namespace zmq

namespace stagecraft {

/// The number of messages handled for one socket before the others have their turn.
inline constexpr int kTurn = 32;

class PortSockets {
 public:
  /// Full is a socket that accepts no more for now. wait() sets `is_ready` when it accepts messages
  /// again.
  struct Full {
    zmq::socket_t* socket = nullptr;
    bool is_ready = false;
  };

  /// Readable is a descriptor. wait() sets `is_ready` when it can be read.
  struct Readable {
    int descriptor = -1;
    bool is_ready = false;
  };

  /// Makes new keys and binds the incoming socket.
  /// Errors: TransportRefused if the address cannot be bound.
  explicit PortSockets(const DataPortOptions& options);
  PortSockets(const PortSockets&) = delete;
  PortSockets(PortSockets&&) = delete;
  PortSockets& operator=(const PortSockets&) = delete;
  PortSockets& operator=(PortSockets&&) = delete;
  ~PortSockets();

  /// Returns the address to which peers send, with the public key.
  [[nodiscard]] const PortAddress& address() const { return address_; }

  [[nodiscard]] zmq::socket_t& incoming() { return *incoming_; }
  [[nodiscard]] zmq::socket_t& questions() { return *questions_; }
  [[nodiscard]] Strangers& strangers() { return *strangers_; }
  /// Returns the handle of ZeroMQ's context, which makes further sockets.
  [[nodiscard]] void* context();

  /// Returns a socket for sending to the peer, with the keys of both. The caller connects it.
  /// Errors: zmq::error_t.
  [[nodiscard]] std::unique_ptr<zmq::socket_t> new_connection(const PortAddress& peer);

  /// Waits until something has arrived, a socket of `full` accepts messages, one of `others` can be
  /// read, wake() is called, or `longest` is over (negative: no limit).
  void wait(std::span<Full> full, std::span<Readable> others, std::chrono::milliseconds longest);
  /// Ends a wait(), or the next one.
  void wake();

  /// Closes the sockets and waits until all sockets of the peers are closed.
  void close();

 private:
  struct Waiting;

  void bind(const std::string& endpoint);

  PortAddress address_;
  std::string secret_key_;
  std::unique_ptr<zmq::context_t> context_;
  std::unique_ptr<zmq::socket_t> questions_;
  std::unique_ptr<zmq::socket_t> incoming_;
  std::optional<Strangers> strangers_;  ///< exists while `incoming_` is open
  std::unique_ptr<Waiting> waiting_;
};

/// Checks the form of an address and its key; connects to nothing.
/// Errors: TransportRefused.
void require_valid(const PortAddress& peer);

/// Returns the error for a peer that cannot be connected to.
[[nodiscard]] Error cannot_connect(const std::string& endpoint,
                                   const std::string& why,
                                   const std::string& what_to_do);

inline constexpr const char* kNameAnAddress = "name an address that a data port returned";

}  // namespace stagecraft
