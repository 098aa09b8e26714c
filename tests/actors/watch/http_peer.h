/// HttpPeer is a connection of a test to a server of this host, which sends what it likes.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>

#include <netinet/in.h>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {

/// Holds a connection to a port of this host.
class HttpPeer {
 public:
  /// `receives`: the bytes that the system takes before they are read; 0: as it likes.
  explicit HttpPeer(int port, int receives = 0)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receives != 0) {
      REQUIRE(setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receives, sizeof receives) == 0);
    }
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  }
  ~HttpPeer() { close(fd_); }
  HttpPeer(HttpPeer&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  HttpPeer(const HttpPeer&) = delete;
  HttpPeer& operator=(const HttpPeer&) = delete;
  HttpPeer& operator=(HttpPeer&&) = delete;

  [[nodiscard]] int socket_number() const { return fd_; }

  /// Returns whether all was sent.
  bool send_all(const std::string& text) const {
    std::size_t sent = 0;
    while (sent < text.size()) {
      const ssize_t now = send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (now <= 0) {
        return false;
      }
      sent += static_cast<std::size_t>(now);
    }
    return true;
  }
  /// Returns what comes, up to and with this text; less if the server closes the connection.
  [[nodiscard]] std::string read_until(const std::string& text) const {
    std::string all;
    for (char one = 0; !all.ends_with(text) && recv(fd_, &one, 1, 0) == 1;) {
      all += one;
    }
    return all;
  }
  /// Returns all that comes until the server closes the connection.
  [[nodiscard]] std::string read_all() const {
    std::string all;
    char some[4096];
    for (ssize_t got = 0; (got = recv(fd_, some, sizeof some, 0)) > 0;) {
      all.append(some, static_cast<std::size_t>(got));
    }
    return all;
  }

 private:
  int fd_;
};

}  // namespace stagecraft
