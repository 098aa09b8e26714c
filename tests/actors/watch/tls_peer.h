/// TlsPeer is a connection of a test to a server of this host over TLS, which sends what it likes.
#pragma once

#include <csignal>
#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include <openssl/ssl.h>

#include "stagecraft/actors/security/pem.h"
#include "stagecraft/tests/actors/watch/http_peer.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {

/// WithoutPipeSignals keeps a server that has closed a connection from ending this process: OpenSSL
/// writes without MSG_NOSIGNAL.
class WithoutPipeSignals {
 public:
  WithoutPipeSignals() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutPipeSignals() {
    const timespec now{};
    (void)sigtimedwait(&pipe_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutPipeSignals(const WithoutPipeSignals&) = delete;
  WithoutPipeSignals& operator=(const WithoutPipeSignals&) = delete;

 private:
  sigset_t pipe_{}, before_{};
};

/// Holds a connection to a port of this host. It accepts any certificate.
class TlsPeer {
 public:
  /// `version`: the only one that it speaks; 0: as it likes.
  explicit TlsPeer(int port, int version = 0)
      : peer_(port),
        context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free),
        session_(nullptr, &SSL_free) {
    REQUIRE(SSL_CTX_set_min_proto_version(context_.get(), version) == 1);
    REQUIRE(SSL_CTX_set_max_proto_version(context_.get(), version) == 1);
    session_.reset(SSL_new(context_.get()));
    REQUIRE(SSL_set_fd(session_.get(), peer_.socket_number()) == 1);
    is_open_ = SSL_connect(session_.get()) == 1;
  }

  /// Returns whether the handshake was done.
  [[nodiscard]] bool is_open() const { return is_open_; }
  [[nodiscard]] int version() const { return SSL_version(session_.get()); }
  [[nodiscard]] security::Certificate certificate() const {
    return security::Certificate(SSL_get1_peer_certificate(session_.get()));
  }

  /// Returns whether all was sent.
  bool send_all(const std::string& text) const {
    return is_open_ && SSL_write(session_.get(), text.data(), static_cast<int>(text.size())) ==
                           static_cast<int>(text.size());
  }
  /// Returns what comes, up to and with this text; less if the server closes the connection.
  [[nodiscard]] std::string read_until(const std::string& text) const {
    std::string all;
    for (char one = 0; !all.ends_with(text) && SSL_read(session_.get(), &one, 1) == 1;) {
      all += one;
    }
    return all;
  }
  /// Returns all that comes until the server closes the connection.
  [[nodiscard]] std::string read_all() const {
    std::string all;
    char some[4096];
    for (int got = 0; (got = SSL_read(session_.get(), some, sizeof some)) > 0;) {
      all.append(some, static_cast<std::size_t>(got));
    }
    return all;
  }
  /// Returns whether the server has said that no more comes: nobody has cut the answer short.
  [[nodiscard]] bool was_told_the_end() const {
    return (SSL_get_shutdown(session_.get()) & SSL_RECEIVED_SHUTDOWN) != 0;
  }

 private:
  WithoutPipeSignals quiet_;
  HttpPeer peer_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> session_;
  bool is_open_ = false;
};

}  // namespace stagecraft
