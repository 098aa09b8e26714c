/// TlsSession: the server's end of one TLS connection of the control plane, as CAF's streams drive
/// it. Made by TlsDoor, on the thread of CAF's loop.
///
/// CAF 0.17 has a session of its own, which takes TLS 1.2, reads the credentials' files for every
/// connection and goes round without pause while a handshake waits.
/// TLS-1: TLS 1.3 alone is spoken, and only with those that show a certificate of the authority.
/// TLS-2: what OpenSSL has to say of one connection is not taken for another's. It keeps errors by
///        thread, and one bad handshake would end every connection of the loop.
/// TLS-3: what CAF has to send before hands were shaken is kept here. CAF would ask again and again
///        whether it can be sent, for every connection that says nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include <caf/io/network/native_socket.hpp>
#include <caf/io/network/rw_state.hpp>

struct ssl_st;
struct ssl_ctx_st;

namespace stagecraft {

using TlsHandle = std::unique_ptr<ssl_st, void (*)(ssl_st*)>;

/// What all sessions of a door have in common: the credentials, read again when a file of theirs
/// has changed, so that they can be renewed under a running process.
class TlsContext {
 public:
  /// The names of the files. Errors: ClusterMember, with OpenSSL's words, where it does not take
  /// them.
  TlsContext(std::string certificate, std::string key, std::string authority);

  /// Returns OpenSSL's side of a session. Errors: likewise.
  [[nodiscard]] TlsHandle handle(int socket);

 private:
  /// When each file was last written, and which it is.
  using Stamp = std::array<std::int64_t, 12>;

  [[nodiscard]] Stamp stamp() const;
  void read();

  std::string certificate_, key_, authority_;
  Stamp read_at_{};
  std::unique_ptr<ssl_ctx_st, void (*)(ssl_ctx_st*)> context_;
};

/// Sockets of connections that have not shaken hands, the oldest first.
using WaitingSockets = std::list<caf::io::network::native_socket>;

class TlsSession {
 public:
  using State = caf::io::network::rw_state;
  using Socket = caf::io::network::native_socket;

  /// Is among `waiting` until it has shaken hands, or goes.
  TlsSession(TlsHandle handle, Socket socket, std::shared_ptr<WaitingSockets> waiting);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // CAF's names for them.
  State read_some(std::size_t& result, Socket socket, void* into, std::size_t size);
  State write_some(std::size_t& result, Socket socket, const void* from, std::size_t size);
  bool must_read_more(Socket socket, std::size_t threshold);

 private:
  [[nodiscard]] State shake_hands();
  [[nodiscard]] bool send_early();
  void leave();

  TlsHandle session_;
  std::shared_ptr<WaitingSockets> waiting_;  ///< null when it is not among them
  WaitingSockets::iterator place_;
  std::string early_;  ///< to be sent when hands were shaken
};

}  // namespace stagecraft
