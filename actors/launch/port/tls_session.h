/// TlsSession is the server's end of one TLS connection of the control plane. CAF's streams drive
/// it. TlsDoor makes it, on the thread of CAF's loop.
///
/// The session of CAF 0.17 accepts TLS 1.2, reads the credentials' files for every connection and
/// loops without a pause while a handshake waits.
/// TLS-1: a session speaks TLS 1.3 only, and only with peers that show a worker's certificate of
///        the authority, each for itself (NodeGuard).
/// TLS-2: an OpenSSL error of one connection is not taken for that of another. OpenSSL keeps errors
///        by thread, so one bad handshake would otherwise end every connection of the loop.
/// TLS-3: bytes that CAF sends before the handshake is done are kept here. Otherwise CAF would ask
///        again and again whether it can send, for every silent connection.
/// TLS-4: before the handshake is done a session takes a bounded amount of memory: it does not wait
///        for a message that is longer than kMostOfHandshakeMessage, and it frees buffers while
///        they are empty.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include <caf/io/network/native_socket.hpp>
#include <caf/io/network/rw_state.hpp>

#include "stagecraft/actors/launch/port/handshake_bound.h"
#include "stagecraft/actors/launch/port/node_guard.h"

struct ssl_st;
struct ssl_ctx_st;

namespace stagecraft {

using TlsHandle = std::unique_ptr<ssl_st, void (*)(ssl_st*)>;

/// TlsContext holds the credentials that all sessions of a door share. It reads their files again
/// after a change, so that credentials can be renewed while a process runs.
class TlsContext {
 public:
  /// Takes the names of the files.
  /// Errors: ClusterMember, with OpenSSL's words, if it refuses them.
  TlsContext(std::string certificate, std::string key, std::string authority);

  /// Returns OpenSSL's side of a session. Errors: those of the constructor.
  [[nodiscard]] TlsHandle handle(int socket);

 private:
  /// Stamp identifies the contents of each file: time of writing, inode, size.
  using Stamp = std::array<std::int64_t, 12>;

  [[nodiscard]] Stamp stamp() const;
  void read();

  std::string certificate_, key_, authority_;
  Stamp read_at_{};
  std::unique_ptr<ssl_ctx_st, void (*)(ssl_ctx_st*)> context_;
};

/// WaitingSockets holds sockets of connections whose handshake is not done, the oldest first.
using WaitingSockets = std::list<caf::io::network::native_socket>;

class TlsSession {
 public:
  using State = caf::io::network::rw_state;
  using Socket = caf::io::network::native_socket;

  /// Stays among `waiting` until its handshake is done or it is destroyed.
  TlsSession(TlsHandle handle,
             Socket socket,
             std::shared_ptr<WaitingSockets> waiting,
             NodeGuard guard);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // CAF requires these names.
  State read_some(std::size_t& result, Socket socket, void* into, std::size_t size);
  State write_some(std::size_t& result, Socket socket, const void* from, std::size_t size);
  bool must_read_more(Socket socket, std::size_t threshold);

 private:
  /// Watches the bytes that OpenSSL reads (keeps TLS-4).
  void watch_handshake();
  [[nodiscard]] State shake_hands();
  /// Sets the worker's name. Returns false if the certificate is no worker's.
  [[nodiscard]] bool identify();
  /// Logs why the peer is refused.
  void refuse(std::string_view why) const;
  [[nodiscard]] bool send_early();
  void leave();

  TlsHandle session_;
  std::shared_ptr<WaitingSockets> waiting_;  ///< null after the handshake
  WaitingSockets::iterator place_;
  std::string early_;  ///< to send after the handshake
  HandshakeBound bound_;
  NodeGuard guard_;
  std::string worker_;  ///< the name in the peer's certificate; empty before the handshake, and
                        ///< of a peer that is refused
};

}  // namespace stagecraft
